// A scan over a threadgroup. Each simdgroup adds the totals of the previous ones. The simdgroup barrier does not
// order other simdgroups.
//
// launch: simdgroup_result_too_early_bug simdgroup_result_too_early_fixed
//   with: grid=128 threadgroup=128 x=float32[128] y=out:float32[128]
#include <metal_stdlib>
using namespace metal;

kernel void simdgroup_result_too_early_bug(
    device const float* x [[buffer(0)]],
    device float* y [[buffer(1)]],
    uint i [[thread_position_in_grid]],
    uint lane [[thread_index_in_simdgroup]],
    uint simdgroup [[simdgroup_index_in_threadgroup]]) {
  threadgroup float totals[4];
  float sum = simd_prefix_inclusive_sum(x[i]);
  if (lane == 31 && simdgroup < 3) {
    totals[simdgroup] = sum;  // also: race
  }
  simdgroup_barrier(mem_flags::mem_threadgroup);
  for (uint g = 0; g < simdgroup; g++) {
    sum += totals[g];  // want: race
  }
  y[i] = sum;
}

kernel void simdgroup_result_too_early_fixed(
    device const float* x [[buffer(0)]],
    device float* y [[buffer(1)]],
    uint i [[thread_position_in_grid]],
    uint lane [[thread_index_in_simdgroup]],
    uint simdgroup [[simdgroup_index_in_threadgroup]]) {
  threadgroup float totals[4];
  float sum = simd_prefix_inclusive_sum(x[i]);
  if (lane == 31 && simdgroup < 3) {
    totals[simdgroup] = sum;
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (uint g = 0; g < simdgroup; g++) {
    sum += totals[g];
  }
  y[i] = sum;
}
