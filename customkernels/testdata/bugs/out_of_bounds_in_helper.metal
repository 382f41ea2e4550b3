// Row sums by a helper function. The kernel passes one row too many. The finding is in the helper, and its path
// leads to the call.
//
// launch: out_of_bounds_in_helper_bug grid=9 threadgroup=8
//   with: x=float32[8,16] y=out:float32[9]
// launch: out_of_bounds_in_helper_fixed grid=9 threadgroup=8
//   with: init=0 x=float32[8,16] y=out:float32[9]
#include <metal_stdlib>
using namespace metal;

inline float row_sum_bug(device const float* row, uint width) {
  float sum = 0;
  for (uint j = 0; j < width; j++) {
    sum += row[j];  // want: out-of-bounds
  }
  return sum;
}

inline float row_sum(device const float* row, uint width) {
  float sum = 0;
  for (uint j = 0; j < width; j++) {
    sum += row[j];
  }
  return sum;
}

kernel void out_of_bounds_in_helper_bug(
    device const float* x [[buffer(0)]],
    device float* y [[buffer(1)]],
    uint i [[thread_position_in_grid]]) {
  y[i] = row_sum_bug(x + i * 16, 16);  // path: out-of-bounds
}

kernel void out_of_bounds_in_helper_fixed(
    device const float* x [[buffer(0)]],
    device float* y [[buffer(1)]],
    uint i [[thread_position_in_grid]]) {
  if (i < 8) {
    y[i] = row_sum(x + i * 16, 16);
  }
}
