// Each lane of a quadgroup broadcasts another lane. The lane must be equal in the quadgroup.
//
// launch: quad_broadcast_of_many_lanes_bug quad_broadcast_of_many_lanes_fixed
//   with: grid=64 threadgroup=32 x=float32[64] y=out:float32[64]
#include <metal_stdlib>
using namespace metal;

kernel void quad_broadcast_of_many_lanes_bug(
    device const float* x [[buffer(0)]],
    device float* y [[buffer(1)]],
    uint i [[thread_position_in_grid]],
    uint lane [[thread_index_in_simdgroup]]) {
  y[i] = quad_broadcast(x[i], ushort(3 - lane % 4));  // want: divergent-argument
}

kernel void quad_broadcast_of_many_lanes_fixed(
    device const float* x [[buffer(0)]],
    device float* y [[buffer(1)]],
    uint i [[thread_position_in_grid]],
    uint lane [[thread_index_in_simdgroup]]) {
  y[i] = quad_shuffle(x[i], ushort(3 - lane % 4));
}
