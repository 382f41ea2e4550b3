// Custom Metal kernels.
#include "mlxg_internal.h"

extern "C" {

mlx_fast_metal_kernel mlxg_metal_kernel_new(
    const char* name,
    mlx_vector_string inputs,
    mlx_vector_string outputs,
    const char* body,
    const char* header,
    bool contiguous,
    bool atomic_outputs,
    char** err) {
  *err = nullptr;
  auto k = mlx_fast_metal_kernel_new(
      name, inputs, outputs, body, header, contiguous, atomic_outputs);
  if (!k.ctx) {
    *err = mlxg::take_error();
  }
  return k;
}

mlxg_results mlxg_metal_kernel_apply(
    mlx_fast_metal_kernel kernel,
    void** inputs,
    size_t n,
    mlx_fast_metal_kernel_config config) {
  mlxg::guard g;
  mlx_vector_array in = mlxg::vector_of(inputs, n);
  mlx_vector_array out = mlx_vector_array_new();
  int rc = mlx_fast_metal_kernel_apply(&out, kernel, in, config, mlxg_stream());
  mlx_vector_array_free(in);
  return mlxg_end_vector(rc, out);
}

} // extern "C"
