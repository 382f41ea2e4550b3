// Compares an uninitialized variable with one number. The checker's initial values are other numbers, so no output
// differs.
//
// launch: uninitialized_comparison_bug uninitialized_comparison_fixed
//   with: grid=64 threadgroup=64 x=float32[64] y=out:float32[64]
#include <metal_stdlib>
using namespace metal;

kernel void uninitialized_comparison_bug(
    device const float* x [[buffer(0)]],
    device float* y [[buffer(1)]],
    uint i [[thread_position_in_grid]]) {
  uint count;
  if (x[i] > 9) {
    count = 5;
  }
  y[i] = count == 5 ? 1 : 0;  // want: uninitialized-read
}

kernel void uninitialized_comparison_fixed(
    device const float* x [[buffer(0)]],
    device float* y [[buffer(1)]],
    uint i [[thread_position_in_grid]]) {
  uint count = 0;
  if (x[i] > 9) {
    count = 5;
  }
  y[i] = count == 5 ? 1 : 0;
}
