// Reverses a row tile by tile. The barrier after the load is present; the barrier before the next load is missing.
//
// launch: tile_reused_in_loop_bug tile_reused_in_loop_fixed
//   with: grid=64 threadgroup=64 x=float32[3,64] y=out:float32[3,64]
#include <metal_stdlib>
using namespace metal;

kernel void tile_reused_in_loop_bug(
    device const float* x [[buffer(0)]],
    device float* y [[buffer(1)]],
    uint i [[thread_position_in_threadgroup]]) {
  threadgroup float tile[64];
  for (uint row = 0; row < 3; row++) {
    tile[i] = x[row * 64 + i];  // want: race
    threadgroup_barrier(mem_flags::mem_threadgroup);
    y[row * 64 + i] = tile[63 - i];  // also: race
  }
}

kernel void tile_reused_in_loop_fixed(
    device const float* x [[buffer(0)]],
    device float* y [[buffer(1)]],
    uint i [[thread_position_in_threadgroup]]) {
  threadgroup float tile[64];
  for (uint row = 0; row < 3; row++) {
    tile[i] = x[row * 64 + i];
    threadgroup_barrier(mem_flags::mem_threadgroup);
    y[row * 64 + i] = tile[63 - i];
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
}
