// Keeps the lower bits of a word with a mask. For all 32 bits the shift count equals the width of the word.
//
// launch: shift_too_wide_bug shift_too_wide_fixed
//   with: grid=33 threadgroup=33 x=uint32[33]:iota y=out:uint32[33]
#include <metal_stdlib>
using namespace metal;

kernel void shift_too_wide_bug(
    device const uint* x [[buffer(0)]],
    device uint* y [[buffer(1)]],
    uint i [[thread_position_in_grid]]) {
  y[i] = 0x9e3779b9u & ((1u << x[i]) - 1u);  // want: shift
}

kernel void shift_too_wide_fixed(
    device const uint* x [[buffer(0)]],
    device uint* y [[buffer(1)]],
    uint i [[thread_position_in_grid]]) {
  y[i] = 0x9e3779b9u & (x[i] < 32 ? (1u << x[i]) - 1u : ~0u);
}
