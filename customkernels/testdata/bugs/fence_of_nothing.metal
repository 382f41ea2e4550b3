// A barrier with mem_none synchronizes the threads but orders no memory accesses.
//
// launch: fence_of_nothing_bug fence_of_nothing_fixed
//   with: grid=128 threadgroup=64 x=float32[128] y=out:float32[128]
#include <metal_stdlib>
using namespace metal;

kernel void fence_of_nothing_bug(
    device const float* x [[buffer(0)]],
    device float* y [[buffer(1)]],
    uint i [[thread_position_in_grid]],
    uint thread_index [[thread_position_in_threadgroup]]) {
  threadgroup float tile[64];
  tile[thread_index ^ 32] = x[i];  // also: fence
  threadgroup_barrier(mem_flags::mem_none);
  y[i] = tile[thread_index];  // want: fence
}

kernel void fence_of_nothing_fixed(
    device const float* x [[buffer(0)]],
    device float* y [[buffer(1)]],
    uint i [[thread_position_in_grid]],
    uint thread_index [[thread_position_in_threadgroup]]) {
  threadgroup float tile[64];
  tile[thread_index ^ 32] = x[i];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  y[i] = tile[thread_index];
}
