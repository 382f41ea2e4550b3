// Thread 0 computes a value that the other threads read without a barrier.
//
// launch: value_shared_without_barrier_bug value_shared_without_barrier_fixed
//   with: grid=128 threadgroup=64 x=float32[128] y=out:float32[128]
#include <metal_stdlib>
using namespace metal;

kernel void value_shared_without_barrier_bug(
    device const float* x [[buffer(0)]],
    device float* y [[buffer(1)]],
    uint i [[thread_position_in_grid]],
    uint thread_index [[thread_position_in_threadgroup]]) {
  threadgroup float scale;
  if (thread_index == 0) {
    scale = 2 * x[i];  // also: race
  }
  y[i] = scale * x[i];  // want: race
}

kernel void value_shared_without_barrier_fixed(
    device const float* x [[buffer(0)]],
    device float* y [[buffer(1)]],
    uint i [[thread_position_in_grid]],
    uint thread_index [[thread_position_in_threadgroup]]) {
  threadgroup float scale;
  if (thread_index == 0) {
    scale = 2 * x[i];
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  y[i] = scale * x[i];
}
