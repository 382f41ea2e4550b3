// Softmax of each row, with one pass over the row for the normalizer.
//
//   y[r, i] = exp(x[r, i] − m) / s,   m = max_j x[r, j],   s = Σ_j exp(x[r, j] − m)
//
// A pair (m, s) represents s·e^m. Pairs are merged by
//
//   (m, s) ⊕ (n, t) = (max(m, n), s·e^(m − max) + t·e^(n − max)),
//
// within a thread, then over the lanes of a simdgroup, then over the simdgroups. Rows may have any width ≥ 1 and
// elements −∞, if at least one element is finite.
//
// Launch: one threadgroup of any size per row; grid (threads, rows).

#include <metal_stdlib>
using namespace metal;

struct normalizer {
  float m; // the greatest so far
  float s; // Σ exp(x − m)
};

inline normalizer join(normalizer a, normalizer b) {
  const float m = max(a.m, b.m);
  if (m == -INFINITY) {
    return normalizer{m, 0.0f};  // both empty
  }
  return normalizer{m, a.s * exp(a.m - m) + b.s * exp(b.m - m)};
}

template <typename T>
[[kernel]] void online_softmax(
    device const T* x [[buffer(0)]],
    constant uint& width [[buffer(1)]],
    device T* y [[buffer(2)]],
    uint2 group [[threadgroup_position_in_grid]],
    uint2 position [[thread_position_in_threadgroup]],
    uint2 threads [[threads_per_threadgroup]],
    uint lane [[thread_index_in_simdgroup]],
    uint simdgroup_id [[simdgroup_index_in_threadgroup]],
    uint simdgroups [[simdgroups_per_threadgroup]]) {
  threadgroup float maxima[32];
  threadgroup float sums[32];
  device const T* row = x + ulong(group.y) * width;

  normalizer mine = {-INFINITY, 0.0f};
  for (uint i = position.x; i < width; i += threads.x) {
    mine = join(mine, normalizer{float(row[i]), 1.0f});
  }
  const float m = simd_max(mine.m);
  const float s = simd_sum(m == -INFINITY ? 0.0f : mine.s * exp(mine.m - m));
  if (lane == 0) {
    maxima[simdgroup_id] = m;
    sums[simdgroup_id] = s;
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  normalizer all = {-INFINITY, 0.0f};
  for (uint g = 0; g < simdgroups; g++) {
    all = join(all, normalizer{maxima[g], sums[g]});
  }
  for (uint i = position.x; i < width; i += threads.x) {
    y[ulong(group.y) * width + i] = T(exp(float(row[i]) - all.m) / all.s);
  }
}
