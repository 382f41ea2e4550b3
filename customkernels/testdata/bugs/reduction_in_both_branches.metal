// Both branches have a reduction, on one line. Each executes with half of the lanes.
//
// launch: reduction_in_both_branches_bug reduction_in_both_branches_fixed
//   with: grid=64 threadgroup=32 x=float32[64] y=out:float32[64]
#include <metal_stdlib>
using namespace metal;

kernel void reduction_in_both_branches_bug(
    device const float* x [[buffer(0)]], device float* y [[buffer(1)]], uint i [[thread_position_in_grid]]) {
  y[i] = i % 2 == 0 ? simd_sum(x[i]) : -simd_sum(x[i]);  // want: divergent-reduction
}

kernel void reduction_in_both_branches_fixed(
    device const float* x [[buffer(0)]], device float* y [[buffer(1)]], uint i [[thread_position_in_grid]]) {
  const float sum = simd_sum(x[i]);
  y[i] = i % 2 == 0 ? sum : -sum;
}
