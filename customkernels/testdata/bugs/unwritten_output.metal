// Doubles 100 numbers with 96 threads. The last four outputs stay undefined.
//
// launch: unwritten_output_bug unwritten_output_fixed
//   with: grid=128 threadgroup=32 x=float32[100] y=out:float32[100]
#include <metal_stdlib>
using namespace metal;

kernel void unwritten_output_bug(  // want: unwritten-output
    device const float* x [[buffer(0)]],
    device float* y [[buffer(1)]],
    uint i [[thread_position_in_grid]]) {
  if (i < 96) {
    y[i] = x[i] + x[i];
  }
}

kernel void unwritten_output_fixed(
    device const float* x [[buffer(0)]],
    device float* y [[buffer(1)]],
    uint i [[thread_position_in_grid]]) {
  if (i < 100) {
    y[i] = x[i] + x[i];
  }
}
