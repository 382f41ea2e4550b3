// Smooths in place. A thread overwrites its cell before its neighbor in the other simdgroup has read it.
//
// launch: stencil_in_place_bug stencil_in_place_fixed
//   with: grid=64 threadgroup=64 x=float32[64] y=out:float32[64]
#include <metal_stdlib>
using namespace metal;

kernel void stencil_in_place_bug(
    device const float* x [[buffer(0)]],
    device float* y [[buffer(1)]],
    uint i [[thread_position_in_threadgroup]]) {
  threadgroup float cells[64];
  cells[i] = x[i];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  const float mean = 0.5f * (cells[i] + cells[(i + 32) % 64]);  // also: race
  cells[i] = mean;  // want: race
  threadgroup_barrier(mem_flags::mem_threadgroup);
  y[i] = cells[63 - i];
}

kernel void stencil_in_place_fixed(
    device const float* x [[buffer(0)]],
    device float* y [[buffer(1)]],
    uint i [[thread_position_in_threadgroup]]) {
  threadgroup float cells[64];
  cells[i] = x[i];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  const float mean = 0.5f * (cells[i] + cells[(i + 32) % 64]);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  cells[i] = mean;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  y[i] = cells[63 - i];
}
