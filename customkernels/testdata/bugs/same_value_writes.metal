// Every thread with a negative element sets a flag: several threads write the same value to one element. This
// works on most GPUs; in Metal it is a race.
//
// launch: same_value_writes_bug same_value_writes_fixed
//   with: grid=128 threadgroup=64 x=int32[128]:-4..9 y=out:uint32[2]
#include <metal_stdlib>
using namespace metal;

kernel void same_value_writes_bug(
    device const int* x [[buffer(0)]],
    device uint* y [[buffer(1)]],
    uint i [[thread_position_in_grid]],
    uint group [[threadgroup_position_in_grid]],
    uint thread_index [[thread_position_in_threadgroup]]) {
  threadgroup uint found;
  if (thread_index == 0) {
    found = 0;
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (x[i] < 0) {
    found = 1;  // want: same-value-write
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (thread_index == 0) {
    y[group] = found;
  }
}

kernel void same_value_writes_fixed(
    device const int* x [[buffer(0)]],
    device uint* y [[buffer(1)]],
    uint i [[thread_position_in_grid]],
    uint group [[threadgroup_position_in_grid]],
    uint thread_index [[thread_position_in_threadgroup]]) {
  threadgroup atomic_uint found;
  if (thread_index == 0) {
    atomic_store_explicit(&found, 0u, memory_order_relaxed);
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (x[i] < 0) {
    atomic_store_explicit(&found, 1u, memory_order_relaxed);
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (thread_index == 0) {
    y[group] = atomic_load_explicit(&found, memory_order_relaxed);
  }
}
