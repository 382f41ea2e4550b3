// Functions of MLX that mlx-c lacks.
#include "mlxg_ahead.h"

#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "mlx/fast.h"
#include "mlx/mlx.h"
#include "mlx/version.h"
#include "mlxg_internal.h"

namespace mx = mlx::core;

// MLXG_NEWER compiles code that needs MLX 0.32.4. With an older MLX the code throws an error instead.
#if MLX_VERSION_NUMERIC >= 32004
#define MLXG_NEWER(...) __VA_ARGS__
#else
#define MLXG_NEWER(...) \
  throw std::runtime_error(std::string("it needs MLX 0.32.4 or later; the loaded MLX is ") + mx::version())
#endif

namespace {

std::optional<mx::array> optional(mlx_array a) {
  return a.ctx ? std::optional(mlxg::array_of(a.ctx)) : std::nullopt;
}

std::optional<int> optional(mlx_optional_int n) {
  return n.has_value ? std::optional(n.value) : std::nullopt;
}

mx::Stream stream(mlx_stream s) {
  return *static_cast<mx::Stream*>(s.ctx);
}

void set(mlx_array* res, mx::array a) {
  res->ctx = new mx::array(std::move(a));
}

void set(mlx_vector_array* res, const std::vector<mx::array>& all) {
  for (auto a : all) {
    if (mlx_vector_array_append_value(*res, mlx_array{&a})) {
      throw std::runtime_error("out of memory");
    }
  }
}

// attempt runs a call and returns 0. If the call throws, it passes the message to mlx-c's error handler and returns 1.
template <typename F>
int attempt(F call) {
  try {
    call();
    return 0;
  } catch (std::exception& e) {
    mlx_error("%s", e.what());
    return 1;
  }
}

}  // namespace

extern "C" {

int mlx_minmax_axes(
    mlx_array* res_0,
    mlx_array* res_1,
    const mlx_array a,
    const int* axes,
    size_t axes_num,
    bool keepdims,
    const mlx_stream s) {
  return attempt([&] {
    MLXG_NEWER(
        auto [low, high] =
            mx::minmax(mlxg::array_of(a.ctx), std::vector<int>(axes, axes + axes_num), keepdims, stream(s));
        set(res_0, std::move(low)); set(res_1, std::move(high)));
  });
}

int mlx_unique(
    mlx_vector_array* res,
    const mlx_array a,
    int size,
    bool return_index,
    bool return_inverse,
    bool return_counts,
    const mlx_array fill_value,
    const mlx_stream s) {
  return attempt([&] {
    MLXG_NEWER(
        set(res, mx::unique(
                     mlxg::array_of(a.ctx), size, return_index, return_inverse, return_counts, optional(fill_value),
                     stream(s))));
  });
}

int mlx_fft_stft(
    mlx_array* res,
    const mlx_array x,
    int n_fft,
    mlx_optional_int hop_length,
    mlx_optional_int win_length,
    const mlx_array window,
    bool center,
    const char* pad_mode,
    mlx_fft_norm norm,
    bool onesided,
    const mlx_stream s) {
  return attempt([&] {
    MLXG_NEWER(
        set(res, mx::fft::stft(
                     mlxg::array_of(x.ctx), n_fft, optional(hop_length), optional(win_length), optional(window), center,
                     pad_mode, static_cast<mx::fft::FFTNorm>(norm), onesided, stream(s))));
  });
}

int mlx_fft_istft(
    mlx_array* res,
    const mlx_array stft_matrix,
    mlx_optional_int n_fft,
    mlx_optional_int hop_length,
    mlx_optional_int win_length,
    const mlx_array window,
    bool center,
    mlx_fft_norm norm,
    bool onesided,
    mlx_optional_int length,
    const mlx_stream s) {
  return attempt([&] {
    MLXG_NEWER(
        set(res,
            mx::fft::istft(
                mlxg::array_of(stft_matrix.ctx), optional(n_fft), optional(hop_length), optional(win_length),
                optional(window), center, static_cast<mx::fft::FFTNorm>(norm), onesided, optional(length), stream(s))));
  });
}

int mlx_fast_gated_delta_update(
    mlx_vector_array* res,
    const mlx_array queries,
    const mlx_array keys,
    const mlx_array values,
    const mlx_array gates,
    const mlx_array beta,
    const mlx_array initial_state,
    const mlx_array mask,
    const mlx_stream s) {
  return attempt([&] {
    MLXG_NEWER(set(
        res,
        mx::fast::gated_delta_update(
            mlxg::array_of(queries.ctx), mlxg::array_of(keys.ctx), mlxg::array_of(values.ctx),
            mlxg::array_of(gates.ctx), mlxg::array_of(beta.ctx), optional(initial_state), optional(mask), stream(s))));
  });
}

int mlx_gather_qmm_global_scale(
    mlx_array* res,
    const mlx_array x,
    const mlx_array w,
    const mlx_array scales,
    const mlx_array biases,
    const mlx_array lhs_indices,
    const mlx_array rhs_indices,
    bool transpose,
    mlx_optional_int group_size,
    mlx_optional_int bits,
    const char* mode,
    const mlx_array global_scale,
    bool sorted_indices,
    const mlx_stream s) {
  return attempt([&] {
    MLXG_NEWER(
        set(res, mx::gather_qmm(
                     mlxg::array_of(x.ctx), mlxg::array_of(w.ctx), mlxg::array_of(scales.ctx), optional(biases),
                     optional(lhs_indices), optional(rhs_indices), transpose, optional(group_size), optional(bits),
                     mode, optional(global_scale), sorted_indices, stream(s))));
  });
}

}  // extern "C"
