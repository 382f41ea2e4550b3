#include "metal_host.h"
template <typename T, int N>
 void custom_kernel_copy(
  const T* x ,
  const float& s,
  T* y ,
  uint3 thread_position_in_grid) {
  uint i = thread_position_in_grid.x;
  y[i] = x[i] * T(s) + T(N);
}
namespace { void mlxg_invoke(void* const* buffers, const mlxg::thread_position& p) {
 custom_kernel_copy<float16_t, 3>(static_cast<const float16_t*>(buffers[0]), *static_cast<const float*>(buffers[1]), static_cast<float16_t*>(buffers[2]), p.thread_position_in_grid); } }
extern "C" const mlxg::entry mlxgrad_entry = { "custom_kernel_copy", 3, mlxg_invoke };
