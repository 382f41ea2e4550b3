// Transposes 4×4 blocks within quadgroups, without threadgroup memory.
//
//   y[b, i, j] = x[b, j, i]
//
// Lane i of a quadgroup holds row i in a vector. In round r it reads element i of lane i + r (mod 4). That lane
// provides the element with the index of the reader, its own index minus r.
//
// Launch: four threads per block; threadgroups of any multiple of 4.

#include <metal_stdlib>
using namespace metal;

template <typename T>
[[kernel]] void quad_transpose(
    device const T* x [[buffer(0)]],
    device T* y [[buffer(1)]],
    uint i [[thread_position_in_grid]],
    uint quad_lane [[thread_index_in_quadgroup]]) {
  vec<T, 4> row;
  vec<T, 4> column;
  for (uint j = 0; j < 4; j++) {
    row[j] = x[i * 4 + j];
  }
  for (uint round = 0; round < 4; round++) {
    const uint asker = (quad_lane - round) & 3;
    const uint source = (quad_lane + round) & 3;
    column[source] = quad_shuffle(row[asker], ushort(source));
  }
  for (uint j = 0; j < 4; j++) {
    y[i * 4 + j] = column[j];
  }
}
