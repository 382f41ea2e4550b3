// The first thread of each threadgroup clears a number of the input, through a cast.
//
// launch: write_to_input_bug write_to_input_fixed
//   with: grid=64 threadgroup=32 x=float32[64] y=out:float32[64]
#include <metal_stdlib>
using namespace metal;

kernel void write_to_input_bug(
    device const float* x [[buffer(0)]],
    device float* y [[buffer(1)]],
    uint i [[thread_position_in_grid]]) {
  device float* values = (device float*)x;
  if (i % 32 == 0) {
    values[i] = 0;  // want: write-to-input
  }
  y[i] = values[i];
}

kernel void write_to_input_fixed(
    device const float* x [[buffer(0)]],
    device float* y [[buffer(1)]],
    uint i [[thread_position_in_grid]]) {
  y[i] = i % 32 == 0 ? 0 : x[i];
}
