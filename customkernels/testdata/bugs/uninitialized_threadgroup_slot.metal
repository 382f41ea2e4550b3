// The 32 lanes of the first simdgroup add up the sums of four simdgroups. Lanes 4 to 31 read slots that no thread
// has written.
//
// launch: uninitialized_threadgroup_slot_bug uninitialized_threadgroup_slot_fixed
//   with: grid=256 threadgroup=128 x=float32[256] y=out:float32[2]
#include <metal_stdlib>
using namespace metal;

kernel void uninitialized_threadgroup_slot_bug(
    device const float* x [[buffer(0)]],
    device float* y [[buffer(1)]],
    uint i [[thread_position_in_grid]],
    uint group [[threadgroup_position_in_grid]],
    uint lane [[thread_index_in_simdgroup]],
    uint simdgroup [[simdgroup_index_in_threadgroup]]) {
  threadgroup float slots[32];
  float sum = simd_sum(x[i]);
  if (lane == 0) {
    slots[simdgroup] = sum;
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (simdgroup == 0) {
    sum = simd_sum(slots[lane]);  // want: uninitialized-read
    if (lane == 0) {
      y[group] = sum;
    }
  }
}

kernel void uninitialized_threadgroup_slot_fixed(
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
