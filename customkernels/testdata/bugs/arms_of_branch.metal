// The last lane stores a value in one arm of a branch, and the other lanes read it in the other arm.
//
// launch: arms_of_branch_bug arms_of_branch_fixed
//   with: grid=64 threadgroup=32 x=float32[64] y=out:float32[64]
#include <metal_stdlib>
using namespace metal;

kernel void arms_of_branch_bug(
    device const float* x [[buffer(0)]],
    device float* y [[buffer(1)]],
    uint i [[thread_position_in_grid]],
    uint lane [[thread_index_in_simdgroup]]) {
  threadgroup float last[1];
  if (lane == 0) {
    last[0] = 0;
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (lane == 31) {
    last[0] = x[i];  // want: race
    y[i] = x[i];
  } else {
    y[i] = last[0];  // also: race
  }
}

kernel void arms_of_branch_fixed(
    device const float* x [[buffer(0)]],
    device float* y [[buffer(1)]],
    uint i [[thread_position_in_grid]],
    uint lane [[thread_index_in_simdgroup]]) {
  threadgroup float last[1];
  if (lane == 31) {
    last[0] = x[i];
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  y[i] = last[0];
}
