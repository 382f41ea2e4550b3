// Adjacent lanes exchange values through threadgroup memory without a barrier.
//
// launch: lockstep_exchange_bug lockstep_exchange_fixed
//   with: grid=64 threadgroup=32 x=float32[64] y=out:float32[64]
#include <metal_stdlib>
using namespace metal;

kernel void lockstep_exchange_bug(
    device const float* x [[buffer(0)]],
    device float* y [[buffer(1)]],
    uint i [[thread_position_in_grid]],
    uint lane [[thread_index_in_simdgroup]]) {
  threadgroup float tile[32];
  tile[lane] = x[i];  // also: lockstep
  y[i] = tile[lane ^ 1];  // want: lockstep
}

kernel void lockstep_exchange_fixed(
    device const float* x [[buffer(0)]],
    device float* y [[buffer(1)]],
    uint i [[thread_position_in_grid]],
    uint lane [[thread_index_in_simdgroup]]) {
  threadgroup float tile[32];
  tile[lane] = x[i];
  simdgroup_barrier(mem_flags::mem_threadgroup);
  y[i] = tile[lane ^ 1];
}
