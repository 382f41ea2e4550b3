// Pads a row with zeros. select evaluates both of its arguments, so it does not guard the read.
//
// launch: select_is_no_guard_bug select_is_no_guard_fixed
//   with: grid=64 threadgroup=32 x=float32[60] n=uint32:60 y=out:float32[64]
#include <metal_stdlib>
using namespace metal;

kernel void select_is_no_guard_bug(
    device const float* x [[buffer(0)]],
    constant uint& n [[buffer(1)]],
    device float* y [[buffer(2)]],
    uint i [[thread_position_in_grid]]) {
  y[i] = select(0.0f, x[i], i < n);  // want: out-of-bounds
}

kernel void select_is_no_guard_fixed(
    device const float* x [[buffer(0)]],
    constant uint& n [[buffer(1)]],
    device float* y [[buffer(2)]],
    uint i [[thread_position_in_grid]]) {
  y[i] = i < n ? x[i] : 0.0f;
}
