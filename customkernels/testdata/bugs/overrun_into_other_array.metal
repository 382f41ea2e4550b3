// Two adjacent threadgroup arrays. The 33rd element of the first is the first of the second on a GPU, which
// reports nothing.
//
// launch: overrun_into_other_array_bug overrun_into_other_array_fixed
//   with: grid=32 threadgroup=32 x=float32[32] y=out:float32[32]
#include <metal_stdlib>
using namespace metal;

kernel void overrun_into_other_array_bug(
    device const float* x [[buffer(0)]],
    device float* y [[buffer(1)]],
    uint i [[thread_position_in_threadgroup]]) {
  threadgroup float first[32];
  threadgroup float second[32];
  first[i] = x[i];
  second[i] = 2 * x[i];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  y[i] = first[i + 1] + second[i];  // want: out-of-bounds
  // Reads first[0] too.
  y[i] += first[31 - i];
}

kernel void overrun_into_other_array_fixed(
    device const float* x [[buffer(0)]],
    device float* y [[buffer(1)]],
    uint i [[thread_position_in_threadgroup]]) {
  threadgroup float first[32];
  threadgroup float second[32];
  first[i] = x[i];
  second[i] = 2 * x[i];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  y[i] = first[(i + 1) % 32] + second[i];
  y[i] += first[31 - i];
}
