// Differences of neighbors. The last thread reads one element past the end of the input.
//
// launch: out_of_bounds_read_bug out_of_bounds_read_fixed
//   with: grid=64 threadgroup=32 x=float32[64] y=out:float32[64]
#include <metal_stdlib>
using namespace metal;

kernel void out_of_bounds_read_bug(
    device const float* x [[buffer(0)]],
    device float* y [[buffer(1)]],
    uint i [[thread_position_in_grid]]) {
  y[i] = x[i + 1] - x[i];  // want: out-of-bounds
}

kernel void out_of_bounds_read_fixed(
    device const float* x [[buffer(0)]],
    device float* y [[buffer(1)]],
    uint i [[thread_position_in_grid]],
    uint n [[threads_per_grid]]) {
  y[i] = i + 1 < n ? x[i + 1] - x[i] : 0.0f;
}
