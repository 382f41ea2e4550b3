// Writes sums and differences to the two halves of one buffer through two pointers. The second pointer begins in
// the middle of the first half, so element 32 of the sums is element 0 of the differences.
//
// launch: aliased_views_bug aliased_views_fixed
//   with: init=0 grid=64 threadgroup=64 a=float32[64] b=float32[64] y=out:float32[2,64]
#include <metal_stdlib>
using namespace metal;

kernel void aliased_views_bug(
    device const float* a [[buffer(0)]],
    device const float* b [[buffer(1)]],
    device float* y [[buffer(2)]],
    uint i [[thread_position_in_grid]]) {
  device float* sums = y;
  device float* differences = y + 32;
  sums[i] = a[i] + b[i];  // also: race
  differences[i] = a[i] - b[i];  // want: race
}

kernel void aliased_views_fixed(
    device const float* a [[buffer(0)]],
    device const float* b [[buffer(1)]],
    device float* y [[buffer(2)]],
    uint i [[thread_position_in_grid]]) {
  device float* sums = y;
  device float* differences = y + 64;
  sums[i] = a[i] + b[i];
  differences[i] = a[i] - b[i];
}
