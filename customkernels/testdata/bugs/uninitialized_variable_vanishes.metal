// Threads from 500 on use a variable that they never set. With the values 0 and a huge negative number, the result
// is near 0, so no output looks wrong.
//
// launch: uninitialized_variable_vanishes_bug uninitialized_variable_vanishes_fixed
//   with: grid=512 threadgroup=256 g=float32[512] y=out:float32[512]
#include <metal_stdlib>
using namespace metal;

kernel void uninitialized_variable_vanishes_bug(
    device const float* g [[buffer(0)]],
    device float* y [[buffer(1)]],
    uint i [[thread_position_in_grid]]) {
  float a;
  if (i < 500) {
    a = g[i];
  }
  y[i] = a / (1 + exp(-a));  // want: uninitialized-read
}

kernel void uninitialized_variable_vanishes_fixed(
    device const float* g [[buffer(0)]],
    device float* y [[buffer(1)]],
    uint i [[thread_position_in_grid]]) {
  float a = 0;
  if (i < 500) {
    a = g[i];
  }
  y[i] = a / (1 + exp(-a));
}
