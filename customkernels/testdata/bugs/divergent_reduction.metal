// A reduction that only the first 20 lanes execute. Metal does not guarantee that its result is the sum over the
// active lanes.
//
// launch: divergent_reduction_bug divergent_reduction_fixed
//   with: grid=64 threadgroup=32 x=float32[64] y=out:float32[64]
#include <metal_stdlib>
using namespace metal;

kernel void divergent_reduction_bug(
    device const float* x [[buffer(0)]],
    device float* y [[buffer(1)]],
    uint i [[thread_position_in_grid]],
    uint lane [[thread_index_in_simdgroup]]) {
  float v = x[i];
  if (lane < 20) {
    v = simd_sum(v);  // want: divergent-reduction
  }
  y[i] = v;
}

kernel void divergent_reduction_fixed(
    device const float* x [[buffer(0)]],
    device float* y [[buffer(1)]],
    uint i [[thread_position_in_grid]],
    uint lane [[thread_index_in_simdgroup]]) {
  const float sum = simd_sum(lane < 20 ? x[i] : 0.0f);
  y[i] = lane < 20 ? sum : x[i];
}
