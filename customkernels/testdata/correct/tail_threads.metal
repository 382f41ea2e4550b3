// Threads that end early.
//
// The grid is rounded up to whole threadgroups, as dispatchThreadgroups and other platforms require, and threads
// without work return. This is correct as long as they return behind all barriers.
//
// Launch: threadgroups of up to 64 threads; the grid is any multiple of them ≥ size.

#include <metal_stdlib>
using namespace metal;

// y[i] = |x[i]|, without synchronization.
template <typename T>
[[kernel]] void tail_return(
    device const T* x [[buffer(0)]],
    constant uint& size [[buffer(1)]],
    device T* y [[buffer(2)]],
    uint i [[thread_position_in_grid]]) {
  if (i >= size) {
    return;
  }
  y[i] = x[i] < T(0) ? -x[i] : x[i];
}

// y[i] = x[j], j the mirror image of i within the elements of its threadgroup. The tail threads return behind the
// barrier.
template <typename T>
[[kernel]] void tail_reverse(
    device const T* x [[buffer(0)]],
    constant uint& size [[buffer(1)]],
    device T* y [[buffer(2)]],
    uint i [[thread_position_in_grid]],
    uint lid [[thread_position_in_threadgroup]],
    uint group [[threadgroup_position_in_grid]],
    uint threads [[threads_per_threadgroup]]) {
  threadgroup T slots[64];
  if (i < size) {
    slots[lid] = x[i];
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (i >= size) {
    return;
  }
  const uint count = min(threads, size - group * threads);
  y[i] = slots[count - 1 - lid];
}

// y[i] = x[i] + x[j], j the mirror image of i among the first `size` threads of its threadgroup. There is one
// threadgroup. The other threads end before the barrier. In Metal, ended threads do not take part in barriers.
template <typename T>
[[kernel]] void tail_before_barrier(
    device const T* x [[buffer(0)]],
    constant uint& size [[buffer(1)]],
    device T* y [[buffer(2)]],
    uint lid [[thread_position_in_threadgroup]]) {
  threadgroup T slots[64];
  if (lid >= size) {
    return;
  }
  slots[lid] = x[lid];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  y[lid] = T(float(x[lid]) + float(slots[size - 1 - lid]));
}
