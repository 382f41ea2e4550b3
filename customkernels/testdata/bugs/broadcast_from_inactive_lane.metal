// All lanes but lane 0 broadcast the value of lane 0. Only an active lane can provide its value.
//
// launch: broadcast_from_inactive_lane_bug broadcast_from_inactive_lane_fixed
//   with: grid=64 threadgroup=32 x=float32[64] y=out:float32[64]
#include <metal_stdlib>
using namespace metal;

kernel void broadcast_from_inactive_lane_bug(
    device const float* x [[buffer(0)]],
    device float* y [[buffer(1)]],
    uint i [[thread_position_in_grid]],
    uint lane [[thread_index_in_simdgroup]]) {
  float v = x[i];
  if (lane > 0) {
    v -= simd_broadcast(v, 0);  // want: shuffle-inactive
  }
  y[i] = v;
}

kernel void broadcast_from_inactive_lane_fixed(
    device const float* x [[buffer(0)]],
    device float* y [[buffer(1)]],
    uint i [[thread_position_in_grid]],
    uint lane [[thread_index_in_simdgroup]]) {
  float v = x[i];
  const float first = simd_broadcast(v, 0);
  if (lane > 0) {
    v -= first;
  }
  y[i] = v;
}
