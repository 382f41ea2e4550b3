// Counts the positive elements of a threadgroup. A simdgroup that runs ahead of thread 0 adds to an uncleared
// counter. The accesses are atomic, so this is no race.
//
// launch: counter_cleared_too_late_bug counter_cleared_too_late_fixed
//   with: grid=128 threadgroup=64 x=float32[128] y=out:uint32[2]
#include <metal_stdlib>
using namespace metal;

kernel void counter_cleared_too_late_bug(
    device const float* x [[buffer(0)]],
    device uint* y [[buffer(1)]],
    uint i [[thread_position_in_grid]],
    uint group [[threadgroup_position_in_grid]],
    uint thread_index [[thread_position_in_threadgroup]]) {
  threadgroup atomic_uint count;
  if (thread_index == 0) {
    atomic_store_explicit(&count, 0u, memory_order_relaxed);
  }
  if (x[i] > 0) {
    atomic_fetch_add_explicit(&count, 1u, memory_order_relaxed);  // want: uninitialized-read
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (thread_index == 0) {
    y[group] = atomic_load_explicit(&count, memory_order_relaxed);
  }
}

kernel void counter_cleared_too_late_fixed(
    device const float* x [[buffer(0)]],
    device uint* y [[buffer(1)]],
    uint i [[thread_position_in_grid]],
    uint group [[threadgroup_position_in_grid]],
    uint thread_index [[thread_position_in_threadgroup]]) {
  threadgroup atomic_uint count;
  if (thread_index == 0) {
    atomic_store_explicit(&count, 0u, memory_order_relaxed);
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (x[i] > 0) {
    atomic_fetch_add_explicit(&count, 1u, memory_order_relaxed);
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (thread_index == 0) {
    y[group] = atomic_load_explicit(&count, memory_order_relaxed);
  }
}
