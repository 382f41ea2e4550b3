// Reverses each threadgroup's elements through threadgroup memory. The flags of the barrier cover device memory
// only.
//
// launch: fence_of_device_memory_bug fence_of_device_memory_fixed
//   with: grid=128 threadgroup=64 x=float32[128] y=out:float32[128]
#include <metal_stdlib>
using namespace metal;

kernel void fence_of_device_memory_bug(
    device const float* x [[buffer(0)]],
    device float* y [[buffer(1)]],
    uint i [[thread_position_in_grid]],
    uint thread_index [[thread_position_in_threadgroup]]) {
  threadgroup float tile[64];
  tile[thread_index] = x[i];  // also: fence
  threadgroup_barrier(mem_flags::mem_device);
  y[i] = tile[63 - thread_index];  // want: fence
}

kernel void fence_of_device_memory_fixed(
    device const float* x [[buffer(0)]],
    device float* y [[buffer(1)]],
    uint i [[thread_position_in_grid]],
    uint thread_index [[thread_position_in_threadgroup]]) {
  threadgroup float tile[64];
  tile[thread_index] = x[i];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  y[i] = tile[63 - thread_index];
}
