// Inclusive prefix sums of each row, by the method of Hillis and Steele.
//
//   y[r, i] = Σ_{j ≤ i} x[r, j]
//
// One threadgroup processes a row in chunks of one element per thread, and carries the sum to the next chunk. Within a
// chunk, step s adds the value 2^s places to the left. Steps alternate between two halves of the slots, so one
// barrier per step suffices: no thread reads the half that is being written.
//
// Launch: threadgroups of n ≤ 256 threads, n any number; grid (n, rows).

#include <metal_stdlib>
using namespace metal;

template <typename T>
[[kernel]] void inclusive_scan(
    device const T* x [[buffer(0)]],
    constant uint& width [[buffer(1)]],
    device T* y [[buffer(2)]],
    uint2 group [[threadgroup_position_in_grid]],
    uint2 position [[thread_position_in_threadgroup]],
    uint2 group_size [[threads_per_threadgroup]]) {
  threadgroup float slots[2][256];
  const uint thread_index = position.x;
  const uint threads = group_size.x;
  const ulong row = ulong(group.y) * width;

  float carry = 0;
  for (uint start = 0; start < width; start += threads) {
    const uint i = start + thread_index;
    uint half_in_use = 0;
    slots[0][thread_index] = i < width ? float(x[row + i]) : 0.0f;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint offset = 1; offset < threads; offset *= 2) {
      float sum = slots[half_in_use][thread_index];
      if (thread_index >= offset) {
        sum += slots[half_in_use][thread_index - offset];
      }
      half_in_use ^= 1;
      slots[half_in_use][thread_index] = sum;
      threadgroup_barrier(mem_flags::mem_threadgroup);
    }
    if (i < width) {
      y[row + i] = T(carry + slots[half_in_use][thread_index]);
    }
    carry += slots[half_in_use][threads - 1];
    // The next chunk overwrites the first half, which other threads may still read.
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
}
