// For each row, the first thread adds up the sums of the simdgroups. With one set of slots, the other simdgroup
// overwrites them for the next row. The fixed kernel alternates between two sets.
//
// launch: slots_reused_in_row_loop_bug slots_reused_in_row_loop_fixed
//   with: grid=64 threadgroup=64 x=float32[4,64] y=out:float32[4]
#include <metal_stdlib>
using namespace metal;

kernel void slots_reused_in_row_loop_bug(
    device const float* x [[buffer(0)]],
    device float* y [[buffer(1)]],
    uint i [[thread_position_in_threadgroup]],
    uint lane [[thread_index_in_simdgroup]],
    uint simdgroup [[simdgroup_index_in_threadgroup]]) {
  threadgroup float slots[2];
  for (uint row = 0; row < 4; row++) {
    const float sum = simd_sum(x[row * 64 + i]);
    if (lane == 0) {
      slots[simdgroup] = sum;  // also: race
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (i == 0) {
      y[row] = slots[0] + slots[1];  // want: race
    }
  }
}

kernel void slots_reused_in_row_loop_fixed(
    device const float* x [[buffer(0)]],
    device float* y [[buffer(1)]],
    uint i [[thread_position_in_threadgroup]],
    uint lane [[thread_index_in_simdgroup]],
    uint simdgroup [[simdgroup_index_in_threadgroup]]) {
  threadgroup float slots[2][2];
  for (uint row = 0; row < 4; row++) {
    const float sum = simd_sum(x[row * 64 + i]);
    if (lane == 0) {
      slots[row % 2][simdgroup] = sum;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (i == 0) {
      y[row] = slots[row % 2][0] + slots[row % 2][1];
    }
  }
}
