// Spreads elements with stride two and wraps round at the end: two threads meet at every
// second element, none at the others.
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

// Round once more, it begins at the odd ones.
kernel void index_wraps_around_fixed(
    device const float* x [[buffer(0)]],
    device float* y [[buffer(1)]],
    uint i [[thread_position_in_grid]]) {
  y[2 * i % 64 + i / 32] = x[i];
}
