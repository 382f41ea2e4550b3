// Shifts all elements by one. The last thread writes one element past the end of the output.
//
// launch: out_of_bounds_write_bug out_of_bounds_write_fixed
//   with: grid=64 threadgroup=32 init=0 x=float32[64] y=out:float32[64]
#include <metal_stdlib>
using namespace metal;

kernel void out_of_bounds_write_bug(
    device const float* x [[buffer(0)]],
    device float* y [[buffer(1)]],
    uint i [[thread_position_in_grid]]) {
  y[i + 1] = x[i];  // want: out-of-bounds
}

kernel void out_of_bounds_write_fixed(
    device const float* x [[buffer(0)]],
    device float* y [[buffer(1)]],
    uint i [[thread_position_in_grid]],
    uint n [[threads_per_grid]]) {
  if (i + 1 < n) {
    y[i + 1] = x[i];
  }
}
