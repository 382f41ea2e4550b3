// Counts the Collatz steps from n to 1: an odd n becomes 3n + 1, an even n is halved. From 0 the loop does not
// end.
//
// launch: endless_loop_bug endless_loop_fixed
//   with: grid=32 threadgroup=32 x=uint32[32]:iota y=out:uint32[32]
#include <metal_stdlib>
using namespace metal;

kernel void endless_loop_bug(
    device const uint* x [[buffer(0)]],
    device uint* y [[buffer(1)]],
    uint i [[thread_position_in_grid]]) {
  uint steps = 0;
  for (uint n = x[i]; n != 1; steps++) {  // want: timeout
    n = n % 2 == 1 ? 3 * n + 1 : n / 2;  // allow: timeout
  }
  y[i] = steps;
}

kernel void endless_loop_fixed(
    device const uint* x [[buffer(0)]],
    device uint* y [[buffer(1)]],
    uint i [[thread_position_in_grid]]) {
  uint steps = 0;
  for (uint n = x[i]; n > 1; steps++) {
    n = n % 2 == 1 ? 3 * n + 1 : n / 2;
  }
  y[i] = steps;
}
