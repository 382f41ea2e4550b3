// Sums and maxima over the threads of a threadgroup, and over the rows of a matrix.

#include "vectors.h"

// The number of components of float, float2 or float3. A float3 has the size of four floats.
template <typename V>
struct Components {
  static constexpr constant int COUNT = sizeof(V) / sizeof(float);
};
template <>
struct Components<float3> {
  static constexpr constant int COUNT = 3;
};

// Returns, to every thread, the sum of `value` over the threadgroup, which consists of whole simdgroups or of a part
// of one. scratch has 32 elements. Two consecutive calls must use different scratch memory. They then need no barrier
// between them: a thread writes the same memory again only after the barrier of the call in between, which all threads
// reach after their reads.
template <typename V>
inline V threadgroup_sum(V value, threadgroup V* scratch, uint lane, uint simdgroup, uint simdgroups) {
#ifdef MLXG_THREADGROUP_SUM
  if constexpr (Components<V>::COUNT > 1) {
    if (simdgroups > 1) {
      return mlxg::threadgroup_sum(value, reinterpret_cast<threadgroup float*>(scratch), lane, simdgroup, simdgroups);
    }
  }
#endif
  value = simd_sum(value);
  if (simdgroups == 1) {
    return value;
  }
  // Each component has 32 consecutive floats, one per memory bank, so that lanes access different banks.
  threadgroup float* const banks = reinterpret_cast<threadgroup float*>(scratch);
  thread float* const components = reinterpret_cast<thread float*>(&value);
  if (lane == 0) {
    for (int i = 0; i < Components<V>::COUNT; i++) {
      banks[i * 32 + simdgroup] = components[i];
    }
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  // Every simdgroup adds the sums of all simdgroups by simd_sum, so all threads return the same bits.
  for (int i = 0; i < Components<V>::COUNT; i++) {
    components[i] = lane < simdgroups ? banks[i * 32 + lane] : 0.0f;
  }
  return simd_sum(value);
}

// Returns, to every thread, the maximum of `value` over the threadgroup. scratch is as for threadgroup_sum.
inline float threadgroup_max(float value, threadgroup float* scratch, uint lane, uint simdgroup, uint simdgroups) {
  value = simd_max(value);
  if (simdgroups == 1) {
    return value;
  }
  if (lane == 0) {
    scratch[simdgroup] = value;
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  return simd_max(lane < simdgroups ? scratch[lane] : value);
}

// Adds the values of lanes with the same index in all simdgroups, pair by pair. Afterwards simdgroup 0 has the sums.
// scratch has VEC·32 elements per simdgroup. A group of one simdgroup does not use it.
template <int VEC>
inline void sum_simdgroups(
    thread float* values, threadgroup float* scratch, uint lane, uint simdgroup, uint simdgroups) {
  if (simdgroups == 1) {
    return;
  }
  for (int k = 0; k < VEC; k++) {
    scratch[(simdgroup * VEC + k) * 32 + lane] = values[k];
  }
  for (uint distance = 1; distance < simdgroups; distance *= 2) {
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (simdgroup % (2 * distance) == 0 && simdgroup + distance < simdgroups) {
      for (int k = 0; k < VEC; k++) {
        values[k] += scratch[((simdgroup + distance) * VEC + k) * 32 + lane];
        scratch[(simdgroup * VEC + k) * 32 + lane] = values[k];
      }
    }
  }
}

// Sums the rows of float matrix group.y into `sums`, in an order that depends only on the launch geometry. A lane sums
// VEC columns, and a simdgroup sums VEC·min(threads, 32). The simdgroups share the rows. A simdgroup loads
// ROWS_PER_STEP rows at a time, a power of two, and adds them in pairs. scratch has VEC·32 elements per simdgroup.
template <typename T, int VEC, int ROWS_PER_STEP>
inline void sum_rows(
    device const float* matrices,
    uint rows,
    uint width,
    device T* sums,
    threadgroup float* scratch,
    uint2 group,
    uint2 threads,
    uint lane,
    uint simdgroup,
    uint simdgroups) {
  const uint lanes = min(threads.x, 32u);
  const size_t column = (size_t(group.x) * lanes + lane) * VEC;
  const bool is_aligned = vec_aligned<VEC>(matrices, width);
  matrices += size_t(group.y) * rows * width;

  float values[VEC] = {};
  if (column < width) {
    for (size_t begin = simdgroup; begin < rows; begin += size_t(simdgroups) * ROWS_PER_STEP) {
      float terms[ROWS_PER_STEP][VEC] = {};
      for (int b = 0; b < ROWS_PER_STEP && begin + size_t(b) * simdgroups < rows; b++) {
        load_vec<VEC>(matrices + (begin + size_t(b) * simdgroups) * width, column, width, is_aligned, terms[b]);
      }
      for (int distance = 1; distance < ROWS_PER_STEP; distance *= 2) {
        for (int b = 0; b < ROWS_PER_STEP; b += 2 * distance) {
          for (int k = 0; k < VEC; k++) {
            terms[b][k] += terms[b + distance][k];
          }
        }
      }
      for (int k = 0; k < VEC; k++) {
        values[k] += terms[0][k];
      }
    }
  }
  sum_simdgroups<VEC>(values, scratch, lane, simdgroup, simdgroups);
  if (simdgroup == 0 && column < width) {
    store_vec<VEC>(sums, column, width, vec_aligned<VEC>(sums, width), values);
  }
}
