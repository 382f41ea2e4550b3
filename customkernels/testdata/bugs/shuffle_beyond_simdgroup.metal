// The last lane of a simdgroup reads the next lane, which does not exist.
//
// launch: shuffle_beyond_simdgroup_bug shuffle_beyond_simdgroup_fixed
//   with: grid=64 threadgroup=32 x=float32[64] y=out:float32[64]
#include <metal_stdlib>
using namespace metal;

kernel void shuffle_beyond_simdgroup_bug(
    device const float* x [[buffer(0)]],
    device float* y [[buffer(1)]],
    uint i [[thread_position_in_grid]],
    uint lane [[thread_index_in_simdgroup]]) {
  y[i] = simd_shuffle(x[i], ushort(lane + 1));  // want: shuffle-inactive
}

kernel void shuffle_beyond_simdgroup_fixed(
    device const float* x [[buffer(0)]],
    device float* y [[buffer(1)]],
    uint i [[thread_position_in_grid]],
    uint lane [[thread_index_in_simdgroup]]) {
  y[i] = simd_shuffle(x[i], ushort((lane + 1) % 32));
}
