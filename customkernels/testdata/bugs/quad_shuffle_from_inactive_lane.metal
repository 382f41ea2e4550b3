// All lanes of a quadgroup read the value of the second lane, which is inactive.
//
// launch: quad_shuffle_from_inactive_lane_bug quad_shuffle_from_inactive_lane_fixed
//   with: grid=32 threadgroup=32 x=float32[32] y=out:float32[32]
#include <metal_stdlib>
using namespace metal;

kernel void quad_shuffle_from_inactive_lane_bug(
    device const float* x [[buffer(0)]],
    device float* y [[buffer(1)]],
    uint i [[thread_position_in_grid]]) {
  float v = x[i];
  if (i % 4 != 1) {
    v += quad_broadcast(v, 1);  // want: shuffle-inactive
  }
  y[i] = v;
}

kernel void quad_shuffle_from_inactive_lane_fixed(
    device const float* x [[buffer(0)]],
    device float* y [[buffer(1)]],
    uint i [[thread_position_in_grid]]) {
  float v = x[i];
  const float second = quad_broadcast(v, 1);
  if (i % 4 != 1) {
    v += second;
  }
  y[i] = v;
}
