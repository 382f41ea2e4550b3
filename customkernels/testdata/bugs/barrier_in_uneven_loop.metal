// A loop with a barrier, in which one simdgroup has one more iteration than the other.
//
// launch: barrier_in_uneven_loop_bug barrier_in_uneven_loop_fixed
//   with: grid=64 threadgroup=64 x=float32[96] y=out:float32[64]
#include <metal_stdlib>
using namespace metal;

// Each thread adds up x[i], x[i + 64], …, with a barrier in each iteration.
kernel void barrier_in_uneven_loop_bug(
    device const float* x [[buffer(0)]],
    device float* y [[buffer(1)]],
    uint i [[thread_position_in_threadgroup]]) {
  threadgroup float tile[64];
  tile[i] = 0;
  for (uint j = i; j < 96; j += 64) {
    tile[i] += x[j];
    threadgroup_barrier(mem_flags::mem_threadgroup);  // want: divergent-barrier
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);  // also: divergent-barrier
  y[i] = tile[63 - i];
}

kernel void barrier_in_uneven_loop_fixed(
    device const float* x [[buffer(0)]],
    device float* y [[buffer(1)]],
    uint i [[thread_position_in_threadgroup]]) {
  threadgroup float tile[64];
  tile[i] = 0;
  for (uint turn = 0; turn < 96; turn += 64) {
    if (turn + i < 96) {
      tile[i] += x[turn + i];
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
  y[i] = tile[63 - i];
}
