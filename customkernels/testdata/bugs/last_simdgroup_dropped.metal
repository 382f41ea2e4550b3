// Adds the sums of four simdgroups, of which the last has four lanes. The number of simdgroups is rounded down.
//
// launch: last_simdgroup_dropped_bug last_simdgroup_dropped_fixed
//   with: grid=100 threadgroup=100 x=float32[100] y=out:float32[1]
#include <metal_stdlib>
using namespace metal;

kernel void last_simdgroup_dropped_bug(
    device const float* x [[buffer(0)]],
    device float* y [[buffer(1)]],
    uint i [[thread_position_in_threadgroup]],
    uint simdgroup [[simdgroup_index_in_threadgroup]],
    uint threads [[threads_per_threadgroup]]) {
  threadgroup float sums[32];
  const float sum = simd_sum(x[i]);
  if (i % 32 == 0) {
    sums[simdgroup] = sum;  // want: dropped-element
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (i == 0) {
    float total = 0;
    for (uint j = 0; j < threads / 32; j++) {
      total += sums[j];
    }
    y[0] = total;
  }
}

kernel void last_simdgroup_dropped_fixed(
    device const float* x [[buffer(0)]],
    device float* y [[buffer(1)]],
    uint i [[thread_position_in_threadgroup]],
    uint simdgroup [[simdgroup_index_in_threadgroup]],
    uint threads [[threads_per_threadgroup]]) {
  threadgroup float sums[32];
  const float sum = simd_sum(x[i]);
  if (i % 32 == 0) {
    sums[simdgroup] = sum;
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (i == 0) {
    float total = 0;
    for (uint j = 0; j < (threads + 31) / 32; j++) {
      total += sums[j];
    }
    y[0] = total;
  }
}
