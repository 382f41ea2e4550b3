#include "metal_host.h"
// Function number grid.y of the floats from a pattern on.
 void custom_kernel_exp(
  const uint* first ,
  float* y ,
  uint3 thread_position_in_grid ,
  uint3 threads_per_grid ) {
  const uint i = thread_position_in_grid.x, n = threads_per_grid.x;
  const float x = as_type<float>(first[0] + i * first[1]);
  float r = 0;
  switch (thread_position_in_grid.y) {
    case 0: r = exp(x); break;
    case 1: r = exp2(x); break;
    case 2: r = exp10(x); break;
    case 3: r = log(x); break;
    case 4: r = log2(x); break;
    case 5: r = log10(x); break;
    case 6: r = tanh(x); break;
  }
  y[thread_position_in_grid.y * n + i] = r;
}
namespace { void mlxg_invoke(void* const* buffers, const mlxg::thread_position& p) {
 custom_kernel_exp(static_cast<const uint*>(buffers[0]), static_cast<float*>(buffers[1]), p.thread_position_in_grid, p.threads_per_grid); } }
extern "C" const mlxg::entry mlxgrad_entry = { "custom_kernel_exp", 2, 0, mlxg_invoke };
