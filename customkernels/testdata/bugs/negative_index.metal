// Adds the left neighbor. Thread 0 reads before the start of the input.
//
// launch: negative_index_bug negative_index_fixed
//   with: grid=64 threadgroup=32 x=float32[64] y=out:float32[64]
#include <metal_stdlib>
using namespace metal;

kernel void negative_index_bug(
    device const float* x [[buffer(0)]],
    device float* y [[buffer(1)]],
    uint i [[thread_position_in_grid]]) {
  const int left = int(i) - 1;
  y[i] = x[i] + x[left];  // want: out-of-bounds
}

kernel void negative_index_fixed(
    device const float* x [[buffer(0)]],
    device float* y [[buffer(1)]],
    uint i [[thread_position_in_grid]]) {
  const int left = int(i) - 1;
  y[i] = x[i] + (left >= 0 ? x[left] : 0.0f);
}
