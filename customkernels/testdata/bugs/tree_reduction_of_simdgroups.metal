// Adds the sums of three simdgroups by halving. The third sum is dropped in both rows.
//
// launch: tree_reduction_of_simdgroups_bug tree_reduction_of_simdgroups_fixed
//   with: grid=96 threadgroup=96 x=float32[2,96] y=out:float32[2]
#include <metal_stdlib>
using namespace metal;

kernel void tree_reduction_of_simdgroups_bug(
    device const float* x [[buffer(0)]],
    device float* y [[buffer(1)]],
    uint i [[thread_position_in_threadgroup]],
    uint simdgroup [[simdgroup_index_in_threadgroup]],
    uint simdgroups [[simdgroups_per_threadgroup]]) {
  threadgroup float sums[2][32];
  for (uint row = 0; row < 2; row++) {
    const float sum = simd_sum(x[row * 96 + i]);
    if (i % 32 == 0) {
      sums[row][simdgroup] = sum;  // want: dropped-element
    }
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (uint offset = simdgroups / 2; offset > 0; offset /= 2) {
    if (i < 2 * offset) {
      sums[i / offset][i % offset] += sums[i / offset][i % offset + offset];
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
  if (i < 2) {
    y[i] = sums[i][0];
  }
}

kernel void tree_reduction_of_simdgroups_fixed(
    device const float* x [[buffer(0)]],
    device float* y [[buffer(1)]],
    uint i [[thread_position_in_threadgroup]],
    uint simdgroup [[simdgroup_index_in_threadgroup]],
    uint simdgroups [[simdgroups_per_threadgroup]]) {
  threadgroup float sums[2][32];
  for (uint row = 0; row < 2; row++) {
    const float sum = simd_sum(x[row * 96 + i]);
    if (i % 32 == 0) {
      sums[row][simdgroup] = sum;
    }
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (i < 2) {
    float sum = 0;
    for (uint j = 0; j < simdgroups; j++) {
      sum += sums[i][j];
    }
    y[i] = sum;
  }
}
