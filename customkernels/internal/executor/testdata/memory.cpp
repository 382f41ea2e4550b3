#include "metal_host.h"
// Threadgroup variables with a total size of SIZE floats.
 void custom_kernel_memory(float* y , uint3 thread_position_in_grid ) {
  typedef float mlxg_tg_type_0 [SIZE - 16]; mlxg_tg_type_0& a = mlxg::threadgroup_variable<mlxg_tg_type_0, 0>();
  typedef float4 mlxg_tg_type_1 [4]; mlxg_tg_type_1& b = mlxg::threadgroup_variable<mlxg_tg_type_1, 1>();
  a[SIZE - 17] = 1; b[0] = 2; b[3] = 3;
  y[thread_position_in_grid.x] = a[SIZE - 17] + b[0].x + b[3].w;
}
namespace { void mlxg_invoke(void* const* buffers, const mlxg::thread_position& p) {
 custom_kernel_memory(static_cast<float*>(buffers[0]), p.thread_position_in_grid); } }
extern "C" const mlxg::entry mlxgrad_entry = { "custom_kernel_memory", 1, mlxg_invoke };
