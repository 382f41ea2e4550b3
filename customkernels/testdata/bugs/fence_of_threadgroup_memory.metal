// Reverses each threadgroup's elements through a scratch buffer in device memory. The flags of the barrier cover
// threadgroup memory only.
//
// launch: fence_of_threadgroup_memory_bug fence_of_threadgroup_memory_fixed
//   with: grid=128 threadgroup=64 x=float32[128] scratch=out:float32[128] y=out:float32[128]
#include <metal_stdlib>
using namespace metal;

kernel void fence_of_threadgroup_memory_bug(
    device const float* x [[buffer(0)]],
    device float* scratch [[buffer(1)]],
    device float* y [[buffer(2)]],
    uint i [[thread_position_in_grid]],
    uint group [[threadgroup_position_in_grid]],
    uint thread_index [[thread_position_in_threadgroup]]) {
  scratch[i] = 2 * x[i];  // also: fence
  threadgroup_barrier(mem_flags::mem_threadgroup);
  y[i] = scratch[group * 64 + 63 - thread_index];  // want: fence
}

kernel void fence_of_threadgroup_memory_fixed(
    device const float* x [[buffer(0)]],
    device float* scratch [[buffer(1)]],
    device float* y [[buffer(2)]],
    uint i [[thread_position_in_grid]],
    uint group [[threadgroup_position_in_grid]],
    uint thread_index [[thread_position_in_threadgroup]]) {
  scratch[i] = 2 * x[i];
  threadgroup_barrier(mem_flags::mem_device);
  y[i] = scratch[group * 64 + 63 - thread_index];
}
