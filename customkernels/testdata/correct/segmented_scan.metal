// Inclusive prefix sums that restart at every marked element.
//
//   y[i] = x[i] + (start[i] ? 0 : y[i − 1])
//
// On pairs (value, whether a segment starts in the range) the operator
//
//   (a, p) ⊕ (b, q) = (q ? b : a + b, p or q)
//
// is associative, so the scan of Hillis and Steele applies. One threadgroup processes the whole array in chunks.
//
// Launch: one threadgroup of up to 256 threads; the grid equals the threadgroup.

#include <metal_stdlib>
using namespace metal;

struct partial_sum {
  float value;
  bool starts;
};

inline partial_sum join(partial_sum left, partial_sum right) {
  partial_sum both;
  both.value = right.starts ? right.value : left.value + right.value;
  both.starts = left.starts || right.starts;
  return both;
}

template <typename T>
[[kernel]] void segmented_scan(
    device const T* x [[buffer(0)]],
    device const uchar* start [[buffer(1)]],
    constant uint& size [[buffer(2)]],
    device T* y [[buffer(3)]],
    uint lid [[thread_index_in_threadgroup]],
    uint threads [[threads_per_threadgroup]]) {
  threadgroup partial_sum slots[256];
  partial_sum carry = {0.0f, false};
  for (uint base = 0; base < size; base += threads) {
    const uint i = base + lid;
    partial_sum mine = {0.0f, false};
    if (i < size) {
      mine.value = float(x[i]);
      mine.starts = start[i] != 0;
    }
    slots[lid] = mine;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint offset = 1; offset < threads; offset <<= 1) {
      if (lid >= offset) {
        mine = join(slots[lid - offset], mine);
      }
      // All threads have read before any thread writes.
      threadgroup_barrier(mem_flags::mem_threadgroup);
      slots[lid] = mine;
      threadgroup_barrier(mem_flags::mem_threadgroup);
    }
    if (i < size) {
      y[i] = T(join(carry, mine).value);
    }
    carry = join(carry, slots[threads - 1]);
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
}
