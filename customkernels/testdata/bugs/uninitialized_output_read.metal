// Adds to an output as if it began with zeros. Without an initial value it is undefined.
//
// launch: uninitialized_output_read_bug uninitialized_output_read_fixed
//   with: grid=64 threadgroup=32 x=float32[64] y=out:float32[64]
#include <metal_stdlib>
using namespace metal;

kernel void uninitialized_output_read_bug(
    device const float* x [[buffer(0)]],
    device float* y [[buffer(1)]],
    uint i [[thread_position_in_grid]]) {
  y[i] += x[i];  // want: uninitialized-read
}

kernel void uninitialized_output_read_fixed(
    device const float* x [[buffer(0)]],
    device float* y [[buffer(1)]],
    uint i [[thread_position_in_grid]]) {
  y[i] = x[i];
}
