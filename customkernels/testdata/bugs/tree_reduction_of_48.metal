// A tree reduction that halves its width drops an element whenever the width is odd. With 48 threads, the third of
// three sums is written and never read.
//
// launch: tree_reduction_of_48_bug tree_reduction_of_48_fixed
//   with: grid=96 threadgroup=48 x=float32[96] y=out:float32[2]
#include <metal_stdlib>
using namespace metal;

kernel void tree_reduction_of_48_bug(
    device const float* x [[buffer(0)]],
    device float* y [[buffer(1)]],
    uint i [[thread_position_in_grid]],
    uint group [[threadgroup_position_in_grid]],
    uint thread_index [[thread_position_in_threadgroup]],
    uint threads [[threads_per_threadgroup]]) {
  threadgroup float sums[1024];
  sums[thread_index] = x[i];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (uint offset = threads / 2; offset > 0; offset /= 2) {
    if (thread_index < offset) {
      sums[thread_index] += sums[thread_index + offset];  // want: dropped-element
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
  if (thread_index == 0) {
    y[group] = sums[0];
  }
}

kernel void tree_reduction_of_48_fixed(
    device const float* x [[buffer(0)]],
    device float* y [[buffer(1)]],
    uint i [[thread_position_in_grid]],
    uint group [[threadgroup_position_in_grid]],
    uint thread_index [[thread_position_in_threadgroup]],
    uint threads [[threads_per_threadgroup]]) {
  threadgroup float sums[1024];
  sums[thread_index] = x[i];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  // The first half is the greater one: the middle element of an odd width stays for the next iteration.
  for (uint width = threads; width > 1; width = (width + 1) / 2) {
    const uint offset = (width + 1) / 2;
    if (thread_index + offset < width) {
      sums[thread_index] += sums[thread_index + offset];
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
  if (thread_index == 0) {
    y[group] = sums[0];
  }
}
