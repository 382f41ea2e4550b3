// Writes elements with a stride of two, modulo the size. Two threads write each even element, none the odd ones.
//
// launch: index_wraps_around_bug index_wraps_around_fixed
//   with: init=0 grid=64 threadgroup=64 x=float32[64] y=out:float32[64]
#include <metal_stdlib>
using namespace metal;

kernel void index_wraps_around_bug(
    device const float* x [[buffer(0)]],
    device float* y [[buffer(1)]],
    uint i [[thread_position_in_grid]]) {
  y[2 * i % 64] = x[i];  // want: race
}

// The second round begins at the odd elements.
kernel void index_wraps_around_fixed(
    device const float* x [[buffer(0)]],
    device float* y [[buffer(1)]],
    uint i [[thread_position_in_grid]]) {
  y[2 * i % 64 + i / 32] = x[i];
}
