// The first simdgroup waits at a barrier that the second one skips. The second waits at the next barrier.
//
// launch: divergent_barrier_bug divergent_barrier_fixed
//   with: grid=128 threadgroup=64 x=float32[128] y=out:float32[128]
#include <metal_stdlib>
using namespace metal;

kernel void divergent_barrier_bug(
    device const float* x [[buffer(0)]],
    device float* y [[buffer(1)]],
    uint i [[thread_position_in_grid]],
    uint thread_index [[thread_position_in_threadgroup]]) {
  threadgroup float tile[64];
  tile[thread_index] = x[i];
  if (thread_index < 32) {
    threadgroup_barrier(mem_flags::mem_threadgroup);  // want: divergent-barrier
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);  // also: divergent-barrier
  y[i] = tile[63 - thread_index];
}

kernel void divergent_barrier_fixed(
    device const float* x [[buffer(0)]],
    device float* y [[buffer(1)]],
    uint i [[thread_position_in_grid]],
    uint thread_index [[thread_position_in_threadgroup]]) {
  threadgroup float tile[64];
  tile[thread_index] = x[i];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  y[i] = tile[63 - thread_index];
}
