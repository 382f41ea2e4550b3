// Reverses 64 elements of device memory in place. The barrier orders the writes before the reads, but nothing
// orders the reads before the next writes.
//
// launch: in_place_device_memory_bug in_place_device_memory_fixed
//   with: grid=64 threadgroup=64 x=float32[64] y=out:float32[64]
#include <metal_stdlib>
using namespace metal;

kernel void in_place_device_memory_bug(
    device const float* x [[buffer(0)]],
    device float* y [[buffer(1)]],
    uint i [[thread_position_in_threadgroup]]) {
  y[i] = 2 * x[i];
  threadgroup_barrier(mem_flags::mem_device);
  const float mirrored = y[63 - i];  // also: race
  y[i] = mirrored;  // want: race
}

kernel void in_place_device_memory_fixed(
    device const float* x [[buffer(0)]],
    device float* y [[buffer(1)]],
    uint i [[thread_position_in_threadgroup]]) {
  y[i] = 2 * x[i];
  threadgroup_barrier(mem_flags::mem_device);
  const float mirrored = y[63 - i];
  threadgroup_barrier(mem_flags::mem_device);
  y[i] = mirrored;
}
