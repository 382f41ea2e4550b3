// Every thread has a table of 4 MB. Depending on the compiler, the overflow occurs at the function's entry or at
// the first access.
//
// launch: stack_overflow_bug stack_overflow_fixed
//   with: grid=32 threadgroup=32 x=uint32[32]:0..99 y=out:uint32[32]
#include <metal_stdlib>
using namespace metal;

kernel void stack_overflow_bug(  // allow: crash
    device const uint* x [[buffer(0)]],
    device uint* y [[buffer(1)]],
    uint i [[thread_position_in_grid]]) {
  uint squares[1 << 20];  // allow: crash
  for (uint j = 0; j < 1 << 20; j++) {
    squares[j] = j * x[i];  // want: crash
  }
  y[i] = squares[x[i]];
}

kernel void stack_overflow_fixed(
    device const uint* x [[buffer(0)]],
    device uint* y [[buffer(1)]],
    uint i [[thread_position_in_grid]]) {
  uint squares[100];
  for (uint j = 0; j < 100; j++) {
    squares[j] = j * x[i];
  }
  y[i] = squares[x[i]];
}
