// Each simdgroup skips the barrier of one iteration: the first simdgroup in the first iteration, the second in the
// second. They meet at the same barrier in different iterations. The checker identifies a barrier by the calls that lead
// to it, and no thread is left waiting.
//
// launch: barriers_of_different_turns_bug barriers_of_different_turns_fixed
//   with: grid=64 threadgroup=64 x=float32[64] y=out:float32[64]
#include <metal_stdlib>
using namespace metal;

kernel void barriers_of_different_turns_bug(
    device const float* x [[buffer(0)]],
    device float* y [[buffer(1)]],
    uint i [[thread_position_in_threadgroup]]) {
  threadgroup float tile[64];
  tile[i] = x[i];
  for (uint turn = 0; turn < 2; turn++) {
    if (turn == i / 32) {
      continue;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);  // want: divergent-barrier
  }
  y[i] = tile[63 - i];
}

kernel void barriers_of_different_turns_fixed(
    device const float* x [[buffer(0)]],
    device float* y [[buffer(1)]],
    uint i [[thread_position_in_threadgroup]]) {
  threadgroup float tile[64];
  tile[i] = x[i];
  for (uint turn = 0; turn < 2; turn++) {
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
  y[i] = tile[63 - i];
}
