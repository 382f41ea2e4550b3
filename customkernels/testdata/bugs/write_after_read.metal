// The flags of the second barrier omit the memory that threads read before it and write after it.
//
// launch: write_after_read_bug write_after_read_fixed
//   with: grid=64 threadgroup=64 x=float32[64] y=out:float32[64]
#include <metal_stdlib>
using namespace metal;

kernel void write_after_read_bug(
    device const float* x [[buffer(0)]],
    device float* y [[buffer(1)]],
    uint i [[thread_position_in_threadgroup]]) {
  threadgroup float tile[64];
  tile[i] = x[i];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  const float a = tile[63 - i];  // also: write-after-read
  threadgroup_barrier(mem_flags::mem_none);
  tile[i] = 2 * a;  // want: write-after-read
  threadgroup_barrier(mem_flags::mem_threadgroup);
  y[i] = tile[63 - i];
}

kernel void write_after_read_fixed(
    device const float* x [[buffer(0)]],
    device float* y [[buffer(1)]],
    uint i [[thread_position_in_threadgroup]]) {
  threadgroup float tile[64];
  tile[i] = x[i];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  const float a = tile[63 - i];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  tile[i] = 2 * a;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  y[i] = tile[63 - i];
}
