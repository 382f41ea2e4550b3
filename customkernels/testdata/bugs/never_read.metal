// The maximum of two halves, in which both operands read the first half. The second half is written and never
// read.
//
// launch: never_read_bug never_read_fixed
//   with: grid=64 threadgroup=64 x=float32[64] y=out:float32[32]
#include <metal_stdlib>
using namespace metal;

kernel void never_read_bug(
    device const float* x [[buffer(0)]],
    device float* y [[buffer(1)]],
    uint i [[thread_position_in_threadgroup]]) {
  threadgroup float tile[64];
  tile[i] = x[i];  // want: never-read
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (i < 32) {
    y[i] = max(tile[i], tile[i]);
  }
}

kernel void never_read_fixed(
    device const float* x [[buffer(0)]],
    device float* y [[buffer(1)]],
    uint i [[thread_position_in_threadgroup]]) {
  threadgroup float tile[64];
  tile[i] = x[i];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (i < 32) {
    y[i] = max(tile[i], tile[i + 32]);
  }
}
