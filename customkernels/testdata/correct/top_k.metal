// The K greatest elements of each row, greatest first, and their indices.
//
//   y[r, k] = x[r, at[r, k]],   k < K
//
// The leftmost of equal elements comes first. A simdgroup searches K times for the best candidate after the last one,
// in the order (value descending, index ascending). So the row is only read.
//
// Launch: one simdgroup per row, several simdgroups per threadgroup; grid 32·rows threads.

#include <metal_stdlib>
using namespace metal;

// Whether (a, i) comes before (b, j).
inline bool before(float a, uint i, float b, uint j) {
  return a > b || (a == b && i < j);
}

template <typename T, int K>
[[kernel]] void top_k(
    device const T* x [[buffer(0)]],
    constant uint& width [[buffer(1)]],
    device T* y [[buffer(2)]],
    device uint* at [[buffer(3)]],
    uint i [[thread_position_in_grid]],
    uint lane [[thread_index_in_simdgroup]]) {
  const uint row = i / 32;
  device const T* values = x + ulong(row) * width;
  float last = INFINITY;
  uint last_place = 0;
  bool any_taken = false;
  for (int k = 0; k < K; k++) {
    float best = -INFINITY;
    uint place = UINT_MAX;
    for (uint j = lane; j < width; j += 32) {
      const float v = float(values[j]);
      const bool left = !any_taken || before(last, last_place, v, j);
      if (left && before(v, j, best, place)) {
        best = v;
        place = j;
      }
    }
    const float best_of_all = simd_max(best);
    const uint place_of_all = simd_min(best == best_of_all ? place : UINT_MAX);
    if (lane == 0) {
      y[row * K + k] = T(best_of_all);
      at[row * K + k] = place_of_all;
    }
    last = best_of_all;
    last_place = place_of_all;
    any_taken = true;
  }
}
