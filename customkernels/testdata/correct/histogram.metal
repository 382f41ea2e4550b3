// The number of elements in each of 64 classes.
//
//   count[c] = |{ i : class(x[i]) = c }|,   class(v) = clamp(floor(v · 64), 0, 63)
//
// Each threadgroup counts in threadgroup memory, where atomics are cheap, and then adds its counts to the output.
// Integer sums do not depend on the order.
//
// Launch: any number of threadgroups of any size. A thread processes the elements i, i + grid, i + 2·grid, … The output
// begins with 0.

#include <metal_stdlib>
using namespace metal;

constant constexpr uint classes = 64;

template <typename T>
[[kernel]] void histogram(
    device const T* x [[buffer(0)]],
    constant uint& size [[buffer(1)]],
    device atomic_uint* count [[buffer(2)]],
    uint i [[thread_position_in_grid]],
    uint grid [[threads_per_grid]],
    uint lid [[thread_index_in_threadgroup]],
    uint threads [[threads_per_threadgroup]]) {
  threadgroup atomic_uint local_count[classes];
  for (uint c = lid; c < classes; c += threads) {
    atomic_store_explicit(&local_count[c], 0u, memory_order_relaxed);
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (; i < size; i += grid) {
    const int c = clamp(int(floor(float(x[i]) * 64.0f)), 0, 63);
    atomic_fetch_add_explicit(&local_count[c], 1u, memory_order_relaxed);
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (uint c = lid; c < classes; c += threads) {
    const uint n = atomic_load_explicit(&local_count[c], memory_order_relaxed);
    if (n > 0) {
      atomic_fetch_add_explicit(&count[c], n, memory_order_relaxed);
    }
  }
}
