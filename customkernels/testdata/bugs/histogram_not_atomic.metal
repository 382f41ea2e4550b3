// Counts values of a threadgroup in bins with ordinary additions, although several threads add to one bin.
//
// launch: histogram_not_atomic_bug histogram_not_atomic_fixed
//   with: grid=128 threadgroup=128 x=uint32[128]:0..7 y=out:uint32[8]
#include <metal_stdlib>
using namespace metal;

kernel void histogram_not_atomic_bug(
    device const uint* x [[buffer(0)]],
    device uint* y [[buffer(1)]],
    uint i [[thread_position_in_threadgroup]]) {
  threadgroup uint bins[8];
  if (i < 8) {
    bins[i] = 0;
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  bins[x[i]] += 1;  // want: race
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (i < 8) {
    y[i] = bins[i];
  }
}

kernel void histogram_not_atomic_fixed(
    device const uint* x [[buffer(0)]],
    device uint* y [[buffer(1)]],
    uint i [[thread_position_in_threadgroup]]) {
  threadgroup atomic_uint bins[8];
  if (i < 8) {
    atomic_store_explicit(&bins[i], 0u, memory_order_relaxed);
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  atomic_fetch_add_explicit(&bins[x[i]], 1u, memory_order_relaxed);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (i < 8) {
    y[i] = atomic_load_explicit(&bins[i], memory_order_relaxed);
  }
}
