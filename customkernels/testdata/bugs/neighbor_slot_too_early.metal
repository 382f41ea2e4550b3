// Circular sums of every 32nd element by doubling. The barrier is behind the loop instead of in it, so a thread
// may read a slot of another iteration.
//
// launch: neighbor_slot_too_early_bug neighbor_slot_too_early_fixed
//   with: grid=128 threadgroup=128 x=float32[128] y=out:float32[128]
#include <metal_stdlib>
using namespace metal;

kernel void neighbor_slot_too_early_bug(
    device const float* x [[buffer(0)]],
    device float* y [[buffer(1)]],
    uint i [[thread_position_in_threadgroup]]) {
  threadgroup float sums[2][128];
  float sum = x[i];
  sums[0][i] = sum;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  uint from = 0;
  for (uint step = 32; step < 128; step *= 2, from ^= 1) {
    sum += sums[from][(i - step) % 128];  // want: race
    sums[from ^ 1][i] = sum;  // also: race
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  y[i] = sums[0][127 - i];
}

kernel void neighbor_slot_too_early_fixed(
    device const float* x [[buffer(0)]],
    device float* y [[buffer(1)]],
    uint i [[thread_position_in_threadgroup]]) {
  threadgroup float sums[2][128];
  float sum = x[i];
  sums[0][i] = sum;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  uint from = 0;
  for (uint step = 32; step < 128; step *= 2, from ^= 1) {
    sum += sums[from][(i - step) % 128];
    sums[from ^ 1][i] = sum;
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
  y[i] = sums[0][127 - i];
}
