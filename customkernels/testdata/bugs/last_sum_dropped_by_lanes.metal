// Each lane of the first simdgroup reads the sum of another simdgroup, and a SIMD-group function adds them. The last sum
// is dropped.
//
// launch: last_sum_dropped_by_lanes_bug last_sum_dropped_by_lanes_fixed
//   with: grid=128 threadgroup=128 x=float32[128] y=out:float32[1]
#include <metal_stdlib>
using namespace metal;

kernel void last_sum_dropped_by_lanes_bug(
    device const float* x [[buffer(0)]],
    device float* y [[buffer(1)]],
    uint i [[thread_position_in_grid]],
    uint simdgroup [[simdgroup_index_in_threadgroup]],
    uint lane [[thread_index_in_simdgroup]]) {
  threadgroup float sums[4];
  const float sum = simd_sum(x[i]);
  if (lane == 0) {
    sums[simdgroup] = sum;  // want: dropped-element
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (simdgroup == 0) {
    const float total = simd_sum(lane < 3 ? sums[lane] : 0);
    if (lane == 0) {
      y[0] = total;
    }
  }
}

kernel void last_sum_dropped_by_lanes_fixed(
    device const float* x [[buffer(0)]],
    device float* y [[buffer(1)]],
    uint i [[thread_position_in_grid]],
    uint simdgroup [[simdgroup_index_in_threadgroup]],
    uint lane [[thread_index_in_simdgroup]]) {
  threadgroup float sums[4];
  const float sum = simd_sum(x[i]);
  if (lane == 0) {
    sums[simdgroup] = sum;
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (simdgroup == 0) {
    const float total = simd_sum(lane < 4 ? sums[lane] : 0);
    if (lane == 0) {
      y[0] = total;
    }
  }
}
