// A kernel for threadgroups of 64 threads, launched with 96.
//
// launch: threadgroup_larger_than_array_bug threadgroup_larger_than_array_fixed
//   with: grid=192 threadgroup=96 x=float32[192] y=out:float32[192]
#include <metal_stdlib>
using namespace metal;

kernel void threadgroup_larger_than_array_bug(
    device const float* x [[buffer(0)]],
    device float* y [[buffer(1)]],
    uint i [[thread_position_in_grid]],
    uint thread_index [[thread_position_in_threadgroup]]) {
  threadgroup float tile[64];
  tile[thread_index] = x[i];  // want: out-of-bounds
  threadgroup_barrier(mem_flags::mem_threadgroup);
  y[i] = tile[63 - thread_index % 64];
}

kernel void threadgroup_larger_than_array_fixed(
    device const float* x [[buffer(0)]],
    device float* y [[buffer(1)]],
    uint i [[thread_position_in_grid]],
    uint thread_index [[thread_position_in_threadgroup]],
    uint threads [[threads_per_threadgroup]]) {
  threadgroup float tile[1024];  // no threadgroup is larger
  tile[thread_index] = x[i];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  y[i] = tile[threads - 1 - thread_index];
}
