// A reduction that only the first 20 lanes execute, when the other lanes have no work left. These lanes are
// inactive all the same.
//
// launch: divergent_reduction_at_end_bug divergent_reduction_at_end_fixed
//   with: grid=64 threadgroup=32 x=float32[64] y=out:float32[2]
#include <metal_stdlib>
using namespace metal;

kernel void divergent_reduction_at_end_bug(
    device const float* x [[buffer(0)]],
    device float* y [[buffer(1)]],
    uint i [[thread_position_in_grid]],
    uint group [[threadgroup_position_in_grid]],
    uint lane [[thread_index_in_simdgroup]]) {
  if (lane < 20) {
    const float sum = simd_sum(x[i]);  // want: divergent-reduction
    if (lane == 0) {
      y[group] = sum;
    }
  }
}

kernel void divergent_reduction_at_end_fixed(
    device const float* x [[buffer(0)]],
    device float* y [[buffer(1)]],
    uint i [[thread_position_in_grid]],
    uint group [[threadgroup_position_in_grid]],
    uint lane [[thread_index_in_simdgroup]]) {
  const float sum = simd_sum(lane < 20 ? x[i] : 0.0f);
  if (lane == 0) {
    y[group] = sum;
  }
}
