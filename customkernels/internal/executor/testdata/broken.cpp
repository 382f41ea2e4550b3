#include "metal_host.h"
 void custom_kernel_broken(float* y , uint3 thread_position_in_grid ) {
  y[thread_position_in_grid.x] = undeclared_name + 1;
}
namespace { void mlxg_invoke(void* const* buffers, const mlxg::thread_position& p) {
 custom_kernel_broken(static_cast<float*>(buffers[0]), p.thread_position_in_grid); } }
extern "C" const mlxg::entry mlxgrad_entry = { "custom_kernel_broken", 1, mlxg_invoke };
