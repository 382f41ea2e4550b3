// Two simdgroups of a threadgroup exchange their elements. A simdgroup barrier synchronizes one simdgroup only.
//
// launch: simdgroup_barrier_for_threadgroup_bug simdgroup_barrier_for_threadgroup_fixed
//   with: grid=128 threadgroup=64 x=float32[128] y=out:float32[128]
#include <metal_stdlib>
using namespace metal;

kernel void simdgroup_barrier_for_threadgroup_bug(
    device const float* x [[buffer(0)]],
    device float* y [[buffer(1)]],
    uint i [[thread_position_in_grid]],
    uint thread_index [[thread_position_in_threadgroup]]) {
  threadgroup float tile[64];
  tile[thread_index] = x[i];  // also: race
  simdgroup_barrier(mem_flags::mem_threadgroup);
  y[i] = tile[thread_index ^ 32];  // want: race
}

kernel void simdgroup_barrier_for_threadgroup_fixed(
    device const float* x [[buffer(0)]],
    device float* y [[buffer(1)]],
    uint i [[thread_position_in_grid]],
    uint thread_index [[thread_position_in_threadgroup]]) {
  threadgroup float tile[64];
  tile[thread_index] = x[i];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  y[i] = tile[thread_index ^ 32];
}
