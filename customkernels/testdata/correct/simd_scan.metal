// Exclusive prefix sums of each row, by a simdgroup's prefix sums.
//
//   y[r, i] = Σ_{j < i} x[r, j]
//
// A thread processes four adjacent elements. The total of a simdgroup is the last lane's exclusive sum plus its four
// elements. The first simdgroup scans the totals in the same way.
//
// Launch: one threadgroup of whole simdgroups per row; grid (threads, rows).

#include <metal_stdlib>
using namespace metal;

template <typename T>
[[kernel]] void simd_scan(
    device const T* x [[buffer(0)]],
    constant uint& width [[buffer(1)]],
    device T* y [[buffer(2)]],
    uint2 group [[threadgroup_position_in_grid]],
    uint lid [[thread_index_in_threadgroup]],
    uint2 threads [[threads_per_threadgroup]],
    uint lane [[thread_index_in_simdgroup]],
    uint simdgroup_id [[simdgroup_index_in_threadgroup]],
    uint simdgroups [[simdgroups_per_threadgroup]]) {
  threadgroup T totals[32];
  threadgroup T chunk_total;
  device const T* in = x + ulong(group.y) * width;
  device T* out = y + ulong(group.y) * width;
  T carry = T(0);
  for (uint base = 0; base < width; base += threads.x * 4) {
    const uint first = base + lid * 4;
    T value[4];
    T sum = T(0);
    for (uint e = 0; e < 4; e++) {
      value[e] = first + e < width ? in[first + e] : T(0);
      sum += value[e];
    }
    const T before_lane = simd_prefix_exclusive_sum(sum);
    if (lane == 31) {
      totals[simdgroup_id] = before_lane + sum;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (simdgroup_id == 0) {
      const T total = lane < simdgroups ? totals[lane] : T(0);
      const T before_simdgroup = simd_prefix_exclusive_sum(total);
      if (lane < simdgroups) {
        totals[lane] = before_simdgroup;
      }
      if (lane == simdgroups - 1) {
        chunk_total = before_simdgroup + total;
      }
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    T before = carry + totals[simdgroup_id] + before_lane;
    for (uint e = 0; e < 4; e++) {
      if (first + e < width) {
        out[first + e] = before;
      }
      before += value[e];
    }
    carry += chunk_total;
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
}
