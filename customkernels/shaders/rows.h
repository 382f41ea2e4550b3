// What the kernels share whose threadgroups walk over the rows of a matrix.
//
// A row lies in packs of C neighbouring elements. Pack p of a thread begins at column
// (p·threads + thread)·C, so that neighbouring threads read neighbouring packs; a
// kernel holds its first R packs of a row in registers, and R packs of every thread
// make the whole row where a launch says so.

#include <metal_stdlib>
using namespace metal;

// C neighbouring elements, which one load or store of at most 16 bytes moves at a time.
template <typename T, int C>
struct alignas(C * sizeof(T) < 16 ? C * sizeof(T) : 16) Pack {
  T values[C];
};

// Whether the rows that begin at p are made of whole packs at addresses that suit
// them.
template <int C, typename T>
inline bool packed(device const T* p, size_t width) {
  return width % C == 0 && reinterpret_cast<size_t>(p) % alignof(Pack<T, C>) == 0;
}

// Reads the pack at a column of a row as values of V, in which the kernel computes; zeros
// stand for what is beyond the row's end.
template <int C, typename T, typename V>
inline void read(device const T* row, size_t column, size_t width, bool is_packed, thread V* values) {
  if (is_packed) {
    const Pack<T, C> pack = *reinterpret_cast<device const Pack<T, C>*>(row + column);
    for (int k = 0; k < C; k++) {
      values[k] = V(pack.values[k]);
    }
  } else if (column + C <= width) {
    for (int k = 0; k < C; k++) {
      values[k] = V(row[column + k]);
    }
  } else {
    for (int k = 0; k < C; k++) {
      values[k] = column + k < width ? V(row[column + k]) : V(0);
    }
  }
}

// Writes the pack at a column of a row, up to the row's end.
template <int C, typename T, typename V>
inline void write(device T* row, size_t column, size_t width, bool is_packed, thread const V* values) {
  if (is_packed) {
    Pack<T, C> pack;
    for (int k = 0; k < C; k++) {
      pack.values[k] = T(values[k]);
    }
    *reinterpret_cast<device Pack<T, C>*>(row + column) = pack;
  } else if (column + C <= width) {
    for (int k = 0; k < C; k++) {
      row[column + k] = T(values[k]);
    }
  } else {
    for (int k = 0; k < C && column + k < width; k++) {
      row[column + k] = T(values[k]);
    }
  }
}

// The sum of the C values.
template <int C>
inline float sum_of(thread const float* values) {
  float sum = 0;
  for (int k = 0; k < C; k++) {
    sum += values[k];
  }
  return sum;
}

// Adds the squares of a pack.
template <int C>
inline void add_squares(thread const float* values, thread float* squares) {
  for (int k = 0; k < C; k++) {
    squares[k] += values[k] * values[k];
  }
}

// Sum over the threadgroup, for every thread. The caller gives other slots (one
// value for each simdgroup) to the next call, which then needs no barrier between:
// nobody writes slots again before everybody has passed the barrier in between.
template <typename V>
inline V threadgroup_sum(V value, threadgroup V* slots, uint lane, uint simdgroup, uint simdgroups) {
  value = simd_sum(value);
  if (simdgroups == 1) {
    return value;
  }
  if (lane == 0) {
    slots[simdgroup] = value;
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  // Every thread adds all of them up: right for a last simdgroup of any size.
  value = V(0);
  for (uint g = 0; g < simdgroups; g++) {
    value += slots[g];
  }
  return value;
}

// Largest value in the threadgroup, for every thread. slots are the caller's as of
// threadgroup_sum.
inline float threadgroup_max(float value, threadgroup float* slots, uint lane, uint simdgroup, uint simdgroups) {
  value = simd_max(value);
  if (simdgroups == 1) {
    return value;
  }
  if (lane == 0) {
    slots[simdgroup] = value;
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (uint g = 0; g < simdgroups; g++) {
    value = max(value, slots[g]);
  }
  return value;
}

// Adds up, in simdgroup 0, what the lanes of the same index have in every simdgroup,
// in the order of simdgroups. slots has C·32 values for each simdgroup; a group of one
// simdgroup does not touch them.
template <int C>
inline void simdgroup_sums_in_order(
    thread float* values,
    threadgroup float* slots,
    uint lane,
    uint simdgroup,
    uint simdgroups) {
  if (simdgroups == 1) {
    return;
  }
  for (int k = 0; k < C; k++) {
    slots[(simdgroup * C + k) * 32 + lane] = values[k];
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (simdgroup == 0) {
    for (int k = 0; k < C; k++) {
      values[k] = 0;
      for (uint g = 0; g < simdgroups; g++) {
        values[k] += slots[(g * C + k) * 32 + lane];
      }
    }
  }
}

// Adds up the rows of the float matrix group.y in the order of the rows: C columns a lane,
// 32 lanes wide at most, and the simdgroups share the rows. slots has C·32 values for
// each simdgroup.
template <typename T, int C>
inline void sum_rows(
    device const float* matrices,
    uint rows,
    uint width,
    device T* sums,
    threadgroup float* slots,
    uint2 group,
    uint2 threads,
    uint lane,
    uint simdgroup,
    uint simdgroups) {
  const uint lanes = min(threads.x, 32u);
  const size_t column = (size_t(group.x) * lanes + lane) * C;
  const bool is_packed = packed<C>(matrices, width);
  matrices += size_t(group.y) * rows * width;

  float values[C] = {};
  if (column < width) {
    for (uint row = simdgroup; row < rows; row += simdgroups) {
      float terms[C];
      read<C>(matrices + size_t(row) * width, column, width, is_packed, terms);
      for (int k = 0; k < C; k++) {
        values[k] += terms[k];
      }
    }
  }
  simdgroup_sums_in_order<C>(values, slots, lane, simdgroup, simdgroups);
  if (simdgroup == 0 && column < width) {
    device T* out = sums + size_t(group.y) * width;
    write<C>(out, column, width, packed<C>(out, width), values);
  }
}
