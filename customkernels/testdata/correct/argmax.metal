// The index of the greatest element of each row, the leftmost of equal ones, and its value.
//
//   at[r] = min { i : x[r, i] = max_j x[r, j] }
//
// Shuffles by 16, 8, 4, 2 and 1 lanes reduce the candidates of a simdgroup. The first simdgroup then reduces the
// winners of all simdgroups from threadgroup memory. Lanes without a candidate hold one that loses against every
// other.
//
// Launch: one threadgroup of whole simdgroups per row; grid (threads, rows).

#include <metal_stdlib>
using namespace metal;

struct candidate {
  float value;
  uint place;
};

inline candidate better(candidate a, candidate b) {
  const bool second = b.value > a.value || (b.value == a.value && b.place < a.place);
  return second ? b : a;
}

inline candidate best_of_simdgroup(candidate c) {
  for (ushort distance = 16; distance > 0; distance /= 2) {
    candidate other;
    other.value = simd_shuffle_down(c.value, distance);
    other.place = simd_shuffle_down(c.place, distance);
    c = better(c, other);
  }
  return c; // right in lane 0
}

template <typename T>
[[kernel]] void argmax(
    device const T* x [[buffer(0)]],
    constant uint& width [[buffer(1)]],
    device uint* at [[buffer(2)]],
    device T* value [[buffer(3)]],
    uint2 group [[threadgroup_position_in_grid]],
    uint lid [[thread_index_in_threadgroup]],
    uint2 threads [[threads_per_threadgroup]],
    uint lane [[thread_index_in_simdgroup]],
    uint simdgroup_id [[simdgroup_index_in_threadgroup]],
    uint simdgroups [[simdgroups_per_threadgroup]]) {
  threadgroup candidate winners[32];
  device const T* row = x + ulong(group.y) * width;
  candidate mine = {-INFINITY, UINT_MAX};
  for (uint i = lid; i < width; i += threads.x) {
    mine = better(mine, candidate{float(row[i]), i});
  }
  mine = best_of_simdgroup(mine);
  if (lane == 0) {
    winners[simdgroup_id] = mine;
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (simdgroup_id == 0) {
    mine = candidate{-INFINITY, UINT_MAX};
    if (lane < simdgroups) {
      mine = winners[lane];
    }
    mine = best_of_simdgroup(mine);
    if (lane == 0) {
      at[group.y] = mine.place;
      value[group.y] = row[mine.place];
    }
  }
}
