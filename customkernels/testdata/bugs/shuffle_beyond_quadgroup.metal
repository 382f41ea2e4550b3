// The last lane of a quadgroup reads the next lane, which belongs to another quadgroup.
//
// launch: shuffle_beyond_quadgroup_bug shuffle_beyond_quadgroup_fixed
//   with: grid=64 threadgroup=32 x=float32[64] y=out:float32[64]
#include <metal_stdlib>
using namespace metal;

kernel void shuffle_beyond_quadgroup_bug(
    device const float* x [[buffer(0)]],
    device float* y [[buffer(1)]],
    uint i [[thread_position_in_grid]],
    uint lane [[thread_index_in_simdgroup]]) {
  y[i] = quad_shuffle(x[i], ushort(lane % 4 + 1));  // want: shuffle-inactive
}

kernel void shuffle_beyond_quadgroup_fixed(
    device const float* x [[buffer(0)]],
    device float* y [[buffer(1)]],
    uint i [[thread_position_in_grid]],
    uint lane [[thread_index_in_simdgroup]]) {
  y[i] = quad_shuffle(x[i], ushort((lane + 1) % 4));
}
