// Subtracts the maximum of a row from its elements. Every thread reads the maximum of the first simdgroup only. No
// reduction follows the stores, so this is no dropped-element.
//
// launch: never_read_maxima_bug never_read_maxima_fixed
//   with: grid=128 threadgroup=128 x=float32[128] y=out:float32[128]
#include <metal_stdlib>
using namespace metal;

kernel void never_read_maxima_bug(
    device const float* x [[buffer(0)]],
    device float* y [[buffer(1)]],
    uint i [[thread_position_in_grid]],
    uint simdgroup [[simdgroup_index_in_threadgroup]],
    uint lane [[thread_index_in_simdgroup]]) {
  threadgroup float maxima[4];
  const float greatest = simd_max(x[i]);
  if (lane == 0) {
    maxima[simdgroup] = greatest;  // want: never-read
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  y[i] = x[i] - maxima[0];
}

kernel void never_read_maxima_fixed(
    device const float* x [[buffer(0)]],
    device float* y [[buffer(1)]],
    uint i [[thread_position_in_grid]],
    uint simdgroup [[simdgroup_index_in_threadgroup]],
    uint lane [[thread_index_in_simdgroup]]) {
  threadgroup float maxima[4];
  const float greatest = simd_max(x[i]);
  if (lane == 0) {
    maxima[simdgroup] = greatest;
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  y[i] = x[i] - max(max(maxima[0], maxima[1]), max(maxima[2], maxima[3]));
}
