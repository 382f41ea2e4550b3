// Transposes a 4×16 matrix with row and column exchanged in the output index. Rows of 16 elements begin at a
// distance of four.
//
// launch: transposed_index_bug transposed_index_fixed
//   with: init=0 grid=16,4 threadgroup=16,4 x=float32[4,16] y=out:float32[16,4]
#include <metal_stdlib>
using namespace metal;

kernel void transposed_index_bug(
    device const float* x [[buffer(0)]],
    device float* y [[buffer(1)]],
    uint2 at [[thread_position_in_grid]]) {
  y[at.y * 4 + at.x] = x[at.y * 16 + at.x];  // want: race
}

kernel void transposed_index_fixed(
    device const float* x [[buffer(0)]],
    device float* y [[buffer(1)]],
    uint2 at [[thread_position_in_grid]]) {
  y[at.x * 4 + at.y] = x[at.y * 16 + at.x];
}
