// Keeps the elements above a threshold, in their order, and counts them.
//
//   y = (x[i] : x[i] > threshold),   from[k] = the i of y[k],   count[0] = |y|
//
// A ballot shows which lanes keep their elements. The output index of a lane is the number of bits below its own. One
// threadgroup processes the whole array in chunks. Every thread adds up the simdgroups' counts in order.
//
// Launch: one threadgroup of whole simdgroups; the grid equals it. y and from are as long as x. Elements behind the
// count keep their initial values.

#include <metal_stdlib>
using namespace metal;

template <typename T>
[[kernel]] void compaction(
    device const T* x [[buffer(0)]],
    constant uint& size [[buffer(1)]],
    constant float& threshold [[buffer(2)]],
    device T* y [[buffer(3)]],
    device uint* from [[buffer(4)]],
    device uint* count [[buffer(5)]],
    uint lid [[thread_index_in_threadgroup]],
    uint threads [[threads_per_threadgroup]],
    uint lane [[thread_index_in_simdgroup]],
    uint simdgroup_id [[simdgroup_index_in_threadgroup]],
    uint simdgroups [[simdgroups_per_threadgroup]]) {
  threadgroup uint kept[2][32];
  uint base = 0;
  uint turn = 0;
  for (uint start = 0; start < size; start += threads, turn ^= 1) {
    const uint i = start + lid;
    const bool keep = i < size && float(x[i]) > threshold;
    const uint bits = uint((simd_vote::vote_t)simd_ballot(keep));
    if (lane == 0) {
      kept[turn][simdgroup_id] = popcount(bits);
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    uint before = base;
    for (uint g = 0; g < simdgroups; g++) {
      before += g < simdgroup_id ? kept[turn][g] : 0;
      base += kept[turn][g];
    }
    if (keep) {
      const uint at = before + popcount(bits & ((1u << lane) - 1u));
      y[at] = x[i];
      from[at] = i;
    }
  }
  if (lid == 0) {
    count[0] = base;
  }
}
