#include "metal_host.h"
// Applies the function with index grid.y to every x, or to pairs of them.
 void custom_kernel_math(
  const float* x ,
  float* y ,
  uint3 thread_position_in_grid ,
  uint3 threads_per_grid ) {
  const uint i = thread_position_in_grid.x, n = threads_per_grid.x;
  const float v = x[i], u = x[n - 1 - i];
  float r = 0;
  switch (thread_position_in_grid.y) {
    case 0: r = exp(v); break;
    case 1: r = exp2(v); break;
    case 2: r = log(fabs(v)); break;
    case 3: r = log2(fabs(v)); break;
    case 4: r = log10(fabs(v)); break;
    case 5: r = sin(v); break;
    case 6: r = cos(v); break;
    case 7: r = tanh(v); break;
    case 8: r = rsqrt(fabs(v)); break;
    case 9: r = sqrt(fabs(v)); break;
    case 10: r = pow(fabs(v), u); break;
    case 11: r = fma(v, u, 1); break;
    case 12: r = atan2(v, u); break;
    case 13: r = sinh(v); break;
    case 14: r = precise::exp(v); break;
    case 15: r = fast::log(fabs(v)); break;
    case 16: r = acos(v / 64); break;
    case 17: r = asinh(v); break;
    case 18: r = log1p(fabs(v)); break;
    case 19: r = fmod(v, u); break;
  }
  y[thread_position_in_grid.y * n + i] = r;
}
namespace { void mlxg_invoke(void* const* buffers, const mlxg::thread_position& p) {
 custom_kernel_math(static_cast<const float*>(buffers[0]), static_cast<float*>(buffers[1]), p.thread_position_in_grid, p.threads_per_grid); } }
extern "C" const mlxg::entry mlxgrad_entry = { "custom_kernel_math", 2, mlxg_invoke };
