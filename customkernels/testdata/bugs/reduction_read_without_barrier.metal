// The sum of a threadgroup. The first simdgroup reads the sums of the others without a barrier.
//
// launch: reduction_read_without_barrier_bug reduction_read_without_barrier_fixed
//   with: grid=256 threadgroup=128 x=float32[256] y=out:float32[2]
#include <metal_stdlib>
using namespace metal;

kernel void reduction_read_without_barrier_bug(
    device const float* x [[buffer(0)]],
    device float* y [[buffer(1)]],
    uint i [[thread_position_in_grid]],
    uint group [[threadgroup_position_in_grid]],
    uint lane [[thread_index_in_simdgroup]],
    uint simdgroup [[simdgroup_index_in_threadgroup]],
    uint simdgroups [[simdgroups_per_threadgroup]]) {
  threadgroup float slots[32];
  float sum = simd_sum(x[i]);
  if (lane == 0) {
    slots[simdgroup] = sum;  // also: race
  }
  if (simdgroup == 0) {
    sum = simd_sum(lane < simdgroups ? slots[lane] : 0.0f);  // want: race
    if (lane == 0) {
      y[group] = sum;
    }
  }
}

kernel void reduction_read_without_barrier_fixed(
    device const float* x [[buffer(0)]],
    device float* y [[buffer(1)]],
    uint i [[thread_position_in_grid]],
    uint group [[threadgroup_position_in_grid]],
    uint lane [[thread_index_in_simdgroup]],
    uint simdgroup [[simdgroup_index_in_threadgroup]],
    uint simdgroups [[simdgroups_per_threadgroup]]) {
  threadgroup float slots[32];
  float sum = simd_sum(x[i]);
  if (lane == 0) {
    slots[simdgroup] = sum;
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (simdgroup == 0) {
    sum = simd_sum(lane < simdgroups ? slots[lane] : 0.0f);
    if (lane == 0) {
      y[group] = sum;
    }
  }
}
