// The last element gets the value of its neighbor.
//
// launch: wrong_value_bug wrong_value_fixed
//   with: grid=64 threadgroup=64 x=float32[64] y=out:float32[64]:expect=2*x[i]+1
#include <metal_stdlib>
using namespace metal;

kernel void wrong_value_bug(
    device const float* x [[buffer(0)]],
    device float* y [[buffer(1)]],
    uint i [[thread_position_in_grid]]) {
  y[i] = 2 * x[min(i, 62u)] + 1;  // want: wrong-value
}

kernel void wrong_value_fixed(
    device const float* x [[buffer(0)]],
    device float* y [[buffer(1)]],
    uint i [[thread_position_in_grid]]) {
  y[i] = 2 * x[i] + 1;
}
