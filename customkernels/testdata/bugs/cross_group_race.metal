// Every threadgroup writes its result to the same element.
//
// launch: cross_group_race_bug cross_group_race_fixed
//   with: grid=128 threadgroup=32 x=float32[128] y=out:float32[128]
#include <metal_stdlib>
using namespace metal;

kernel void cross_group_race_bug(
    device const float* x [[buffer(0)]],
    device float* y [[buffer(1)]],
    uint i [[thread_position_in_grid]],
    uint thread_index [[thread_position_in_threadgroup]]) {
  y[thread_index] = 2 * x[i];  // want: race
}

kernel void cross_group_race_fixed(
    device const float* x [[buffer(0)]],
    device float* y [[buffer(1)]],
    uint i [[thread_position_in_grid]]) {
  y[i] = 2 * x[i];
}
