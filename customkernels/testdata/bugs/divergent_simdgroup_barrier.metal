// Half of a simdgroup waits at one simdgroup barrier, the other half at another.
//
// launch: divergent_simdgroup_barrier_bug divergent_simdgroup_barrier_fixed
//   with: grid=64 threadgroup=32 x=float32[64] y=out:float32[64]
#include <metal_stdlib>
using namespace metal;

kernel void divergent_simdgroup_barrier_bug(
    device const float* x [[buffer(0)]],
    device float* y [[buffer(1)]],
    uint i [[thread_position_in_grid]],
    uint lane [[thread_index_in_simdgroup]]) {
  threadgroup float tile[32];
  tile[lane] = x[i];
  if (lane < 16) {
    simdgroup_barrier(mem_flags::mem_threadgroup);  // want: divergent-barrier
  }
  simdgroup_barrier(mem_flags::mem_threadgroup);  // also: divergent-barrier
  y[i] = tile[lane ^ 1];
}

kernel void divergent_simdgroup_barrier_fixed(
    device const float* x [[buffer(0)]],
    device float* y [[buffer(1)]],
    uint i [[thread_position_in_grid]],
    uint lane [[thread_index_in_simdgroup]]) {
  threadgroup float tile[32];
  tile[lane] = x[i];
  simdgroup_barrier(mem_flags::mem_threadgroup);
  y[i] = tile[lane ^ 1];
}
