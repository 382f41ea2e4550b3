// A reduction within a simdgroup without barriers. It is correct only if the lanes run in lockstep, which Metal
// does not guarantee.
//
// launch: lockstep_bug lockstep_fixed
//   with: grid=64 threadgroup=32 x=float32[64] y=out:float32[2]
#include <metal_stdlib>
using namespace metal;

kernel void lockstep_bug(
    device const float* x [[buffer(0)]],
    device float* y [[buffer(1)]],
    uint i [[thread_position_in_grid]],
    uint group [[threadgroup_position_in_grid]],
    uint lane [[thread_index_in_simdgroup]]) {
  threadgroup float sums[32];
  sums[lane] = x[i];
  simdgroup_barrier(mem_flags::mem_threadgroup);
  for (uint offset = 16; offset > 0; offset /= 2) {
    if (lane < offset) {
      sums[lane] += sums[lane + offset];  // want: lockstep
    }
  }
  if (lane == 0) {
    y[group] = sums[0];
  }
}

kernel void lockstep_fixed(
    device const float* x [[buffer(0)]],
    device float* y [[buffer(1)]],
    uint i [[thread_position_in_grid]],
    uint group [[threadgroup_position_in_grid]],
    uint lane [[thread_index_in_simdgroup]]) {
  threadgroup float sums[32];
  sums[lane] = x[i];
  simdgroup_barrier(mem_flags::mem_threadgroup);
  for (uint offset = 16; offset > 0; offset /= 2) {
    if (lane < offset) {
      sums[lane] += sums[lane + offset];
    }
    simdgroup_barrier(mem_flags::mem_threadgroup);
  }
  if (lane == 0) {
    y[group] = sums[0];
  }
}
