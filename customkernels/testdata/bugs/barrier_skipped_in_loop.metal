// The first simdgroup skips the barrier of the first iteration. Its second barrier meets the other simdgroup's
// first one, and the other simdgroup then waits alone.
//
// launch: barrier_skipped_in_loop_bug barrier_skipped_in_loop_fixed
//   with: grid=64 threadgroup=64 x=float32[64] y=out:float32[64]
#include <metal_stdlib>
using namespace metal;

kernel void barrier_skipped_in_loop_bug(
    device const float* x [[buffer(0)]],
    device float* y [[buffer(1)]],
    uint i [[thread_position_in_threadgroup]]) {
  threadgroup float tile[64];
  tile[i] = x[i];
  for (uint turn = 0; turn < 2; turn++) {
    if (turn == 0 && i < 32) {
      continue;
    }
    tile[i] += x[i];
    threadgroup_barrier(mem_flags::mem_threadgroup);  // want: divergent-barrier
  }
  y[i] = tile[i];  // allow: divergent-barrier
}

kernel void barrier_skipped_in_loop_fixed(
    device const float* x [[buffer(0)]],
    device float* y [[buffer(1)]],
    uint i [[thread_position_in_threadgroup]]) {
  threadgroup float tile[64];
  tile[i] = x[i];
  for (uint turn = 0; turn < 2; turn++) {
    if (turn == 1 || i >= 32) {
      tile[i] += x[i];
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
  y[i] = tile[i];
}
