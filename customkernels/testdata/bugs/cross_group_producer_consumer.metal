// Every threadgroup stores its sum and, after a barrier, reads the sum of the previous threadgroup. Nothing orders
// two threadgroups of one launch.
//
// launch: cross_group_producer_consumer_bug grid=128 threadgroup=32
//   with: init=0 x=float32[128] sums=out:float32[4] y=out:float32[4]
// launch: cross_group_producer_consumer_fixed grid=128 threadgroup=32
//   with: init=0 x=float32[128] y=out:float32[4]
#include <metal_stdlib>
using namespace metal;

kernel void cross_group_producer_consumer_bug(
    device const float* x [[buffer(0)]],
    device float* sums [[buffer(1)]],
    device float* y [[buffer(2)]],
    uint i [[thread_position_in_grid]],
    uint group [[threadgroup_position_in_grid]],
    uint lane [[thread_index_in_simdgroup]]) {
  const float sum = simd_sum(x[i]);
  if (lane == 0) {
    sums[group] = sum;  // also: race
  }
  threadgroup_barrier(mem_flags::mem_device);
  if (lane == 0) {
    y[group] = group > 0 ? sums[group - 1] : 0.0f;  // want: race
  }
}

// Recomputes the sum of the previous threadgroup.
kernel void cross_group_producer_consumer_fixed(
    device const float* x [[buffer(0)]],
    device float* y [[buffer(1)]],
    uint i [[thread_position_in_grid]],
    uint group [[threadgroup_position_in_grid]],
    uint lane [[thread_index_in_simdgroup]]) {
  const float sum = simd_sum(group > 0 ? x[i - 32] : 0.0f);
  if (lane == 0) {
    y[group] = sum;
  }
}
