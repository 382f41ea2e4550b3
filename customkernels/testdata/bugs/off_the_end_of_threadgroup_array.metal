// A three-point average with a tile of 64 elements that has no room for the halo.
//
// launch: off_the_end_of_threadgroup_array_bug off_the_end_of_threadgroup_array_fixed
//   with: grid=64 threadgroup=64 x=float32[66] y=out:float32[64]
#include <metal_stdlib>
using namespace metal;

kernel void off_the_end_of_threadgroup_array_bug(
    device const float* x [[buffer(0)]],
    device float* y [[buffer(1)]],
    uint i [[thread_position_in_threadgroup]]) {
  threadgroup float tile[64];
  tile[i] = x[i];
  if (i >= 62) {
    tile[i + 2] = x[i + 2];  // want: out-of-bounds
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  // The sum reads no missing element, so there is one bug only.
  y[i] = tile[i] + (i < 62 ? tile[i + 1] + tile[i + 2] : x[i + 1] + x[i + 2]);
}

kernel void off_the_end_of_threadgroup_array_fixed(
    device const float* x [[buffer(0)]],
    device float* y [[buffer(1)]],
    uint i [[thread_position_in_threadgroup]]) {
  threadgroup float tile[66];
  tile[i] = x[i];
  if (i >= 62) {
    tile[i + 2] = x[i + 2];
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  y[i] = tile[i] + tile[i + 1] + tile[i + 2];
}
