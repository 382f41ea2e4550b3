// Threads that end early.
//
// The grid is rounded up to whole threadgroups, as it must be for dispatchThreadgroups and
// on other platforms, and the threads without work return. That is right as long as
// nobody waits for them: where there is a barrier, they return behind it.
//
// Launch: threadgroups of up to 64 threads; the grid is any multiple of them ≥ size.

#include <metal_stdlib>
using namespace metal;

// y[i] = |x[i]|, without any meeting of threads.
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

// y[i] = x[j], j the mirror image of i within the elements of its threadgroup. All threads
// meet before those of the tail return.
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

// y[i] = x[i] + x[j], j the mirror image of i among the first `size` threads of its own
// group, of which there is a full one only. The others end before the barrier, at which
// Metal does not wait for them.
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
