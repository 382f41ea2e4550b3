// Sums that begin with an uninitialized variable. The finding is at the store.
//
// launch: uninitialized_variable_bug uninitialized_variable_fixed
//   with: grid=8 threadgroup=8 x=float32[8,16] y=out:float32[8]
#include <metal_stdlib>
using namespace metal;

kernel void uninitialized_variable_bug(
    device const float* x [[buffer(0)]],
    device float* y [[buffer(1)]],
    uint i [[thread_position_in_grid]]) {
  float sums[4];
  for (uint j = 0; j < 16; j++) {
    sums[j % 4] += x[i * 16 + j];
  }
  y[i] = (sums[0] + sums[1]) + (sums[2] + sums[3]);  // want: uninitialized-read
}

kernel void uninitialized_variable_fixed(
    device const float* x [[buffer(0)]],
    device float* y [[buffer(1)]],
    uint i [[thread_position_in_grid]]) {
  float sums[4] = {};
  for (uint j = 0; j < 16; j++) {
    sums[j % 4] += x[i * 16 + j];
  }
  y[i] = (sums[0] + sums[1]) + (sums[2] + sums[3]);
}
