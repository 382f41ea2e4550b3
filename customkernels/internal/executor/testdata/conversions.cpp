#include "metal_host.h"
// Converts COUNT consecutive elements, as the shaders do, and each element on its own. Reports the differences.
template <int COUNT>
 void custom_kernel_conversions(
  const ushort* bits ,
  const float* f ,
  uint* differences ,
  uint3 thread_position_in_grid ) {
  const uint i = thread_position_in_grid.x;
  const half* const h = reinterpret_cast<const half*>(bits) + i * COUNT;
  float floats[COUNT] = {};
  half halves[COUNT] = {};
  uint count = 0;
#ifdef MLXG_VECTOR_CONVERSIONS
  mlxg::convert<COUNT>(h, floats);
  mlxg::convert<COUNT>(f + i * COUNT, halves);
  for (int k = 0; k < COUNT; k++) {
    count += as_type<uint>(floats[k]) != as_type<uint>(float(h[k]));
    count += halves[k].bits != half(f[i * COUNT + k]).bits;
  }
#endif
  differences[i] = count;
}
namespace { void mlxg_invoke(void* const* buffers, const mlxg::thread_position& p) {
 custom_kernel_conversions<COUNT>(static_cast<const ushort*>(buffers[0]), static_cast<const float*>(buffers[1]), static_cast<uint*>(buffers[2]), p.thread_position_in_grid); } }
extern "C" const mlxg::entry mlxgrad_entry = { "custom_kernel_conversions", 3, 0, mlxg_invoke };
