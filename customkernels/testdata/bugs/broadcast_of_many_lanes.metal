// Each lane broadcasts another lane. The lane of a broadcast must be equal in all lanes.
//
// launch: broadcast_of_many_lanes_bug broadcast_of_many_lanes_fixed
//   with: grid=64 threadgroup=32 x=float32[64] y=out:float32[64]
#include <metal_stdlib>
using namespace metal;

kernel void broadcast_of_many_lanes_bug(
    device const float* x [[buffer(0)]],
    device float* y [[buffer(1)]],
    uint i [[thread_position_in_grid]],
    uint lane [[thread_index_in_simdgroup]]) {
  y[i] = simd_broadcast(x[i], ushort(31 - lane));  // want: divergent-argument
}

kernel void broadcast_of_many_lanes_fixed(
    device const float* x [[buffer(0)]],
    device float* y [[buffer(1)]],
    uint i [[thread_position_in_grid]],
    uint lane [[thread_index_in_simdgroup]]) {
  y[i] = simd_shuffle(x[i], ushort(31 - lane));
}
