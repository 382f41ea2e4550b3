// A tile of 34 KB of threadgroup memory. The limit is 32 KB.
//
// launch: too_much_threadgroup_memory_bug too_much_threadgroup_memory_fixed
//   with: grid=64 threadgroup=64 x=float32[64] y=out:float32[64]
#include <metal_stdlib>
using namespace metal;

kernel void too_much_threadgroup_memory_bug(
    device const float* x [[buffer(0)]],
    device float* y [[buffer(1)]],
    uint i [[thread_position_in_threadgroup]]) {
  threadgroup float tile[64][136];  // want: limit
  tile[i][0] = x[i];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  y[i] = tile[63 - i][0];
}

kernel void too_much_threadgroup_memory_fixed(
    device const float* x [[buffer(0)]],
    device float* y [[buffer(1)]],
    uint i [[thread_position_in_threadgroup]]) {
  threadgroup float tile[64][128];
  tile[i][0] = x[i];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  y[i] = tile[63 - i][0];
}
