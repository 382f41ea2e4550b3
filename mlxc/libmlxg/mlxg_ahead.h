// Functions of MLX that mlx-c 0.7.0 lacks, declared in mlx-c's style. mlxc/internal/generate binds them like mlx-c's
// own functions. They need MLX 0.32.4 and return an error with an older MLX. If a later mlx-c declares one of them, the
// generator reports the duplicate.
//
// Three functions of MLX 0.32.4 have no binding: matrix_transpose swaps the last two axes, which Go can do already;
// libmlxg's own streams replace peek_default_stream; and get_array_buffer_size is not needed.
#ifndef MLXG_AHEAD_H
#define MLXG_AHEAD_H

#include "mlx/c/mlx.h"

#ifdef __cplusplus
extern "C" {
#endif

int mlx_minmax_axes(
    mlx_array* res_0,
    mlx_array* res_1,
    const mlx_array a,
    const int* axes,
    size_t axes_num,
    bool keepdims,
    const mlx_stream s);

// The results are the values, followed by the indices, the inverse and the counts if the flags request them.
int mlx_unique(
    mlx_vector_array* res,
    const mlx_array a,
    int size,
    bool return_index,
    bool return_inverse,
    bool return_counts,
    const mlx_array fill_value /* may be null */,
    const mlx_stream s);

int mlx_fft_stft(
    mlx_array* res,
    const mlx_array x,
    int n_fft,
    mlx_optional_int hop_length,
    mlx_optional_int win_length,
    const mlx_array window /* may be null */,
    bool center,
    const char* pad_mode,
    mlx_fft_norm norm,
    bool onesided,
    const mlx_stream s);

int mlx_fft_istft(
    mlx_array* res,
    const mlx_array stft_matrix,
    mlx_optional_int n_fft,
    mlx_optional_int hop_length,
    mlx_optional_int win_length,
    const mlx_array window /* may be null */,
    bool center,
    mlx_fft_norm norm,
    bool onesided,
    mlx_optional_int length,
    const mlx_stream s);

// The results are the output and the state after the last position.
int mlx_fast_gated_delta_update(
    mlx_vector_array* res,
    const mlx_array queries,
    const mlx_array keys,
    const mlx_array values,
    const mlx_array gates,
    const mlx_array beta,
    const mlx_array initial_state /* may be null */,
    const mlx_array mask /* may be null */,
    const mlx_stream s);

// The same as mlx_gather_qmm, with the global scale of w.
int mlx_gather_qmm_global_scale(
    mlx_array* res,
    const mlx_array x,
    const mlx_array w,
    const mlx_array scales,
    const mlx_array biases /* may be null */,
    const mlx_array lhs_indices /* may be null */,
    const mlx_array rhs_indices /* may be null */,
    bool transpose,
    mlx_optional_int group_size,
    mlx_optional_int bits,
    const char* mode,
    const mlx_array global_scale,
    bool sorted_indices,
    const mlx_stream s);

#ifdef __cplusplus
}
#endif

#endif
