// Even and odd lanes call the same function at two places. Each call executes with half of the lanes, and reads the
// other half.
//
// launch: shuffle_in_helper_of_branches_bug shuffle_in_helper_of_branches_fixed
//   with: grid=64 threadgroup=32 x=float32[64] y=out:float32[64]
#include <metal_stdlib>
using namespace metal;

float pair_sum(float v) {
  return v + simd_shuffle_xor(v, 1);  // want: shuffle-inactive
}

kernel void shuffle_in_helper_of_branches_bug(
    device const float* x [[buffer(0)]], device float* y [[buffer(1)]], uint i [[thread_position_in_grid]]) {
  if (i % 2 == 0) {
    y[i] = pair_sum(x[i]) * 3;  // path: shuffle-inactive
  } else {
    y[i] = pair_sum(x[i]) * 2;
  }
}

kernel void shuffle_in_helper_of_branches_fixed(
    device const float* x [[buffer(0)]], device float* y [[buffer(1)]], uint i [[thread_position_in_grid]]) {
  const float sum = pair_sum(x[i]);
  y[i] = sum * (i % 2 == 0 ? 3 : 2);
}
