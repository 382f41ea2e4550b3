// Threads without an element return before a barrier. In Metal, ended threads do not take part in barriers. CUDA
// and other GPUs do not guarantee this.
//
// launch: barrier_after_exit_bug barrier_after_exit_fixed
//   with: grid=64 threadgroup=64 x=float32[50] n=uint32:50 y=out:float32[50]
#include <metal_stdlib>
using namespace metal;

kernel void barrier_after_exit_bug(
    device const float* x [[buffer(0)]],
    constant uint& n [[buffer(1)]],
    device float* y [[buffer(2)]],
    uint i [[thread_position_in_grid]]) {
  threadgroup float tile[64];
  if (i >= n) {
    return;
  }
  tile[i] = x[i];
  threadgroup_barrier(mem_flags::mem_threadgroup);  // want: barrier-after-exit
  y[i] = tile[n - 1 - i];
}

kernel void barrier_after_exit_fixed(
    device const float* x [[buffer(0)]],
    constant uint& n [[buffer(1)]],
    device float* y [[buffer(2)]],
    uint i [[thread_position_in_grid]]) {
  threadgroup float tile[64];
  if (i < n) {
    tile[i] = x[i];
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (i < n) {
    y[i] = tile[n - 1 - i];
  }
}
