// Each lane reads the first lane of a group of four by a delta of its own. The delta must be equal in all lanes.
//
// launch: shuffle_by_different_deltas_bug shuffle_by_different_deltas_fixed
//   with: grid=64 threadgroup=32 x=float32[64] y=out:float32[64]
#include <metal_stdlib>
using namespace metal;

kernel void shuffle_by_different_deltas_bug(
    device const float* x [[buffer(0)]],
    device float* y [[buffer(1)]],
    uint i [[thread_position_in_grid]],
    uint lane [[thread_index_in_simdgroup]]) {
  y[i] = simd_shuffle_up(x[i], ushort(lane % 4));  // want: divergent-argument
}

kernel void shuffle_by_different_deltas_fixed(
    device const float* x [[buffer(0)]],
    device float* y [[buffer(1)]],
    uint i [[thread_position_in_grid]],
    uint lane [[thread_index_in_simdgroup]]) {
  y[i] = simd_shuffle(x[i], ushort(lane & ~3u));
}
