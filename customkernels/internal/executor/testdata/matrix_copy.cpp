#include "metal_host.h"
// Only matrix loads and stores. Nothing blocks, but the lanes cooperate, so the kernel cannot run as a loop.
 void custom_kernel_matrix_copy(const float* x , float* y , uint3 threadgroup_position_in_grid ) {
  simdgroup_float8x8 m;
  simdgroup_load(m, x + threadgroup_position_in_grid.x * 64, 8, 0, true);
  simdgroup_store(m, y + threadgroup_position_in_grid.x * 64, 8);
}
namespace { void mlxg_invoke(void* const* buffers, const mlxg::thread_position& p) {
 custom_kernel_matrix_copy(static_cast<const float*>(buffers[0]), static_cast<float*>(buffers[1]), p.threadgroup_position_in_grid); } }
extern "C" const mlxg::entry mlxgrad_entry = { "custom_kernel_matrix_copy", 2, mlxg_invoke };
