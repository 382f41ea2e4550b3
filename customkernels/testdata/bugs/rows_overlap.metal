// One thread per row. The stride of the output rows is one too small, so each row overlaps the next.
//
// launch: rows_overlap_bug rows_overlap_fixed
//   with: init=0 grid=4 threadgroup=1 x=float32[4,16] width=uint32:16 y=out:float32[4,16]
#include <metal_stdlib>
using namespace metal;

kernel void rows_overlap_bug(
    device const float* x [[buffer(0)]],
    constant uint& width [[buffer(1)]],
    device float* y [[buffer(2)]],
    uint row [[thread_position_in_grid]]) {
  for (uint j = 0; j < width; j++) {
    y[row * (width - 1) + j] = 2 * x[row * width + j];  // want: race
  }
}

kernel void rows_overlap_fixed(
    device const float* x [[buffer(0)]],
    constant uint& width [[buffer(1)]],
    device float* y [[buffer(2)]],
    uint row [[thread_position_in_grid]]) {
  for (uint j = 0; j < width; j++) {
    y[row * width + j] = 2 * x[row * width + j];
  }
}
