// Custom Metal and CUDA kernels.
#include <cstring>

#include "mlxg_internal.h"

namespace {

// apply makes the configuration of a launch and adds it to the graph. mlx-c has the same
// functions twice, for two types of configuration.
template <typename Kernel, typename Config>
mlxg_results apply(
    Kernel kernel,
    void** inputs,
    size_t n,
    const mlxg_launch& l,
    Config config,
    void (*free_config)(Config),
    int (*add_output)(Config, const int*, size_t, mlx_dtype),
    int (*set_grid)(Config, int, int, int),
    int (*set_group)(Config, int, int, int),
    int (*set_init)(Config, float),
    int (*add_dtype)(Config, const char*, mlx_dtype),
    int (*add_int)(Config, const char*, int),
    int (*add_bool)(Config, const char*, bool),
    int (*run)(mlx_vector_array*, Kernel, const mlx_vector_array, const Config, const mlx_stream)) {
  int rc = 0;
  const int* dims = l.dims;
  for (size_t i = 0; rc == 0 && i < l.n_outputs; i++) {
    rc = add_output(config, dims + 1, dims[0], static_cast<mlx_dtype>(l.dtypes[i]));
    dims += 1 + dims[0];
  }
  if (rc == 0) {
    rc = set_grid(config, l.grid[0], l.grid[1], l.grid[2]);
  }
  if (rc == 0) {
    rc = set_group(config, l.threadgroup[0], l.threadgroup[1], l.threadgroup[2]);
  }
  if (rc == 0 && l.init_value) {
    rc = set_init(config, *l.init_value);
  }
  const char* name = l.names;
  for (size_t i = 0; rc == 0 && i < l.n_template; i++) {
    switch (l.kinds[i]) {
      case MLXG_TEMPLATE_DTYPE:
        rc = add_dtype(config, name, static_cast<mlx_dtype>(l.values[i]));
        break;
      case MLXG_TEMPLATE_INT:
        rc = add_int(config, name, l.values[i]);
        break;
      default:
        rc = add_bool(config, name, l.values[i] != 0);
    }
    name += std::strlen(name) + 1;
  }
  mlx_vector_array out = mlx_vector_array_new();
  if (rc == 0) {
    mlx_vector_array in = mlxg::vector_of(inputs, n);
    rc = run(&out, kernel, in, config, mlxg_stream());
    mlx_vector_array_free(in);
  }
  free_config(config);
  return mlxg_end_vector(rc, out);
}

} // namespace

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
    mlx_fast_metal_kernel kernel, void** inputs, size_t n, const mlxg_launch* launch) {
  mlxg::guard g;
  return apply(
      kernel,
      inputs,
      n,
      *launch,
      mlx_fast_metal_kernel_config_new(),
      mlx_fast_metal_kernel_config_free,
      mlx_fast_metal_kernel_config_add_output_arg,
      mlx_fast_metal_kernel_config_set_grid,
      mlx_fast_metal_kernel_config_set_thread_group,
      mlx_fast_metal_kernel_config_set_init_value,
      mlx_fast_metal_kernel_config_add_template_arg_dtype,
      mlx_fast_metal_kernel_config_add_template_arg_int,
      mlx_fast_metal_kernel_config_add_template_arg_bool,
      mlx_fast_metal_kernel_apply);
}

mlx_fast_cuda_kernel mlxg_cuda_kernel_new(
    const char* name,
    mlx_vector_string inputs,
    mlx_vector_string outputs,
    const char* body,
    const char* header,
    bool contiguous,
    int shared_memory,
    char** err) {
  *err = nullptr;
  auto k = mlx_fast_cuda_kernel_new(
      name, inputs, outputs, body, header, contiguous, shared_memory);
  if (!k.ctx) {
    *err = mlxg::take_error();
  }
  return k;
}

mlxg_results mlxg_cuda_kernel_apply(
    mlx_fast_cuda_kernel kernel, void** inputs, size_t n, const mlxg_launch* launch) {
  mlxg::guard g;
  return apply(
      kernel,
      inputs,
      n,
      *launch,
      mlx_fast_cuda_kernel_config_new(),
      mlx_fast_cuda_kernel_config_free,
      mlx_fast_cuda_kernel_config_add_output_arg,
      mlx_fast_cuda_kernel_config_set_grid,
      mlx_fast_cuda_kernel_config_set_thread_group,
      mlx_fast_cuda_kernel_config_set_init_value,
      mlx_fast_cuda_kernel_config_add_template_arg_dtype,
      mlx_fast_cuda_kernel_config_add_template_arg_int,
      mlx_fast_cuda_kernel_config_add_template_arg_bool,
      mlx_fast_cuda_kernel_apply);
}

} // extern "C"
