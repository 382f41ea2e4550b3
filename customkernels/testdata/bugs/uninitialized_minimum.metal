// A minimum that begins with an uninitialized variable. It is right if the variable is greater than every number, or
// a NaN.
//
// launch: uninitialized_minimum_bug uninitialized_minimum_fixed
//   with: grid=8 threadgroup=8 x=float32[8,16]:-9..9 y=out:float32[8]
#include <metal_stdlib>
using namespace metal;

kernel void uninitialized_minimum_bug(
    device const float* x [[buffer(0)]],
    device float* y [[buffer(1)]],
    uint i [[thread_position_in_grid]]) {
  half least;
  for (uint j = 0; j < 16; j++) {
    least = min(least, half(x[i * 16 + j]));
  }
  y[i] = least;  // want: uninitialized-read
}

kernel void uninitialized_minimum_fixed(
    device const float* x [[buffer(0)]],
    device float* y [[buffer(1)]],
    uint i [[thread_position_in_grid]]) {
  half least = INFINITY;
  for (uint j = 0; j < 16; j++) {
    least = min(least, half(x[i * 16 + j]));
  }
  y[i] = least;
}
