// A tree reduction in which only the adding threads reach the barrier. The other threads continue with the next
// iteration and end.
//
// launch: barrier_within_condition_bug barrier_within_condition_fixed
//   with: grid=128 threadgroup=64 x=float32[128] y=out:float32[2]

#include <metal_stdlib>
using namespace metal;

kernel void barrier_within_condition_bug(
    device const float* x [[buffer(0)]],
    device float* y [[buffer(1)]],
    uint i [[thread_position_in_grid]],
    uint group [[threadgroup_position_in_grid]],
    uint thread_index [[thread_position_in_threadgroup]]) {
  threadgroup float sums[64];
  sums[thread_index] = x[i];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (uint n = 32; n > 0; n /= 2) {
    if (thread_index < n) {
      sums[thread_index] += sums[thread_index + n];
      threadgroup_barrier(mem_flags::mem_threadgroup);  // want: divergent-barrier
    }
  }
  if (thread_index == 0) {
    y[group] = sums[0];
  }
}

kernel void barrier_within_condition_fixed(
    device const float* x [[buffer(0)]],
    device float* y [[buffer(1)]],
    uint i [[thread_position_in_grid]],
    uint group [[threadgroup_position_in_grid]],
    uint thread_index [[thread_position_in_threadgroup]]) {
  threadgroup float sums[64];
  sums[thread_index] = x[i];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (uint n = 32; n > 0; n /= 2) {
    if (thread_index < n) {
      sums[thread_index] += sums[thread_index + n];
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
  if (thread_index == 0) {
    y[group] = sums[0];
  }
}
