// The lower half of a simdgroup reads values of the upper half, which is inactive.
//
// launch: shuffle_from_inactive_lane_bug shuffle_from_inactive_lane_fixed
//   with: grid=64 threadgroup=32 x=float32[64] y=out:float32[64]
#include <metal_stdlib>
using namespace metal;

kernel void shuffle_from_inactive_lane_bug(
    device const float* x [[buffer(0)]],
    device float* y [[buffer(1)]],
    uint i [[thread_position_in_grid]],
    uint lane [[thread_index_in_simdgroup]]) {
  float v = x[i];
  if (lane < 16) {
    v += simd_shuffle_down(v, 16);  // want: shuffle-inactive
  }
  y[i] = v;
}

kernel void shuffle_from_inactive_lane_fixed(
    device const float* x [[buffer(0)]],
    device float* y [[buffer(1)]],
    uint i [[thread_position_in_grid]],
    uint lane [[thread_index_in_simdgroup]]) {
  float v = x[i];
  const float other = simd_shuffle_down(v, 16);
  if (lane < 16) {
    v += other;
  }
  y[i] = v;
}
