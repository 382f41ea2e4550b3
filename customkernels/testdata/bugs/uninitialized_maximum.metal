// A maximum that begins with an uninitialized variable. It is right if the variable is less than every number.
//
// launch: uninitialized_maximum_bug uninitialized_maximum_fixed
//   with: grid=8 threadgroup=8 x=float32[8,16] y=out:float32[8]
#include <metal_stdlib>
using namespace metal;

kernel void uninitialized_maximum_bug(
    device const float* x [[buffer(0)]],
    device float* y [[buffer(1)]],
    uint i [[thread_position_in_grid]]) {
  float greatest;
  for (uint j = 0; j < 16; j++) {
    greatest = max(greatest, x[i * 16 + j]);
  }
  y[i] = greatest;  // want: uninitialized-read
}

kernel void uninitialized_maximum_fixed(
    device const float* x [[buffer(0)]],
    device float* y [[buffer(1)]],
    uint i [[thread_position_in_grid]]) {
  float greatest = -INFINITY;
  for (uint j = 0; j < 16; j++) {
    greatest = max(greatest, x[i * 16 + j]);
  }
  y[i] = greatest;
}
