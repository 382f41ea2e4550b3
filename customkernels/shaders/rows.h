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
  if (C == 1 || is_packed) {
    const Pack<T, C> pack = reinterpret_cast<device const Pack<T, C>*>(row)[column / C];
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

// What a thread holds of a row until it computes with it: R packs of H, which is T or float.
// They are words, since a compiler may take halves apart where it loads them, and wait for
// them.
template <typename H, int C, int R>
struct HeldPacks {
  Pack<uint, (C * sizeof(H) + 3) / 4> packs[R];
};

// Holds pack p of a packed row, which begins at a column.
template <typename T, typename H, int C, int R>
inline void hold_pack(device const T* row, int p, size_t column, size_t width, thread HeldPacks<H, C, R>& held) {
  typedef Pack<uint, (C * sizeof(H) + 3) / 4> Words;
  if (is_same<T, H>::value) {
    held.packs[p] = reinterpret_cast<device const Words*>(row)[column / C];
  } else {
    read<C>(row, column, width, true, reinterpret_cast<thread H*>(held.packs[p].values));
  }
}

// Holds the packs of a packed row that begin at column first and every stride. Where H is T
// nothing waits for them.
template <typename T, typename H, int C, int R>
inline void hold(
    device const T* row, size_t width, size_t first, size_t stride, thread HeldPacks<H, C, R>& held) {
  for (int p = 0; p < R && first + p * stride < width; p++) {
    hold_pack(row, p, first + p * stride, width, held);
  }
}

// The values of pack p of a row, which lie at a column, in float: held, if HELD, or read.
template <bool HELD, typename T, typename H, int C, int R>
inline void values_of(
    thread const HeldPacks<H, C, R>& held,
    device const T* row,
    int p,
    size_t column,
    size_t width,
    thread float* values) {
  if (HELD) {
    for (int k = 0; k < C; k++) {
      values[k] = float(reinterpret_cast<thread const H*>(held.packs[p].values)[k]);
    }
  } else {
    read<C>(row, column, width, false, values);
  }
}

// Writes the pack at a column of a row, up to the row's end.
template <int C, typename T, typename V>
inline void write(device T* row, size_t column, size_t width, bool is_packed, thread const V* values) {
  if (C == 1 || is_packed) {
    Pack<T, C> pack;
    for (int k = 0; k < C; k++) {
      pack.values[k] = T(values[k]);
    }
    reinterpret_cast<device Pack<T, C>*>(row)[column / C] = pack;
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

// The sum of the C values, a power of two, in pairs.
template <int C>
inline float sum_of(thread const float* values) {
  float sums[C];
  for (int k = 0; k < C; k++) {
    sums[k] = values[k];
  }
  for (int n = C / 2; n > 0; n /= 2) {
    for (int k = 0; k < n; k++) {
      sums[k] += sums[k + n];
    }
  }
  return sums[0];
}

// Adds the squares of a pack.
template <int C>
inline void add_squares(thread const float* values, thread float* squares) {
  for (int k = 0; k < C; k++) {
    squares[k] += values[k] * values[k];
  }
}

// How many floats a value has: of a float3's four, one is none.
template <typename V>
struct Floats {
  enum { count = sizeof(V) / sizeof(float) };
};
template <>
struct Floats<float3> {
  enum { count = 3 };
};

// Sum over the threadgroup, which has whole simdgroups or one that is not, for every thread.
// The caller gives other slots, 32 of them, to the next call, which then needs no barrier
// between: nobody writes slots again before everybody has passed the barrier in between.
template <typename V>
inline V threadgroup_sum(V value, threadgroup V* slots, uint lane, uint simdgroup, uint simdgroups) {
  value = simd_sum(value);
  if (simdgroups == 1) {
    return value;
  }
  // Floats of the same name lie side by side, in a bank each.
  threadgroup float* const banks = reinterpret_cast<threadgroup float*>(slots);
  thread float* const parts = reinterpret_cast<thread float*>(&value);
  if (lane == 0) {
    for (int i = 0; i < Floats<V>::count; i++) {
      banks[i * 32 + simdgroup] = parts[i];
    }
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  // Every simdgroup adds them up as lanes are added: in pairs.
  for (int i = 0; i < Floats<V>::count; i++) {
    parts[i] = lane < simdgroups ? banks[i * 32 + lane] : 0.0f;
  }
  return simd_sum(value);
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

// Adds up, in simdgroup 0, what the lanes of the same index have in every simdgroup, in pairs.
// slots has C·32 values for each simdgroup; a group of one simdgroup does not touch them.
template <int C>
inline void add_simdgroups(
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
  for (uint apart = 1; apart < simdgroups; apart *= 2) {
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (simdgroup % (2 * apart) == 0 && simdgroup + apart < simdgroups) {
      for (int k = 0; k < C; k++) {
        values[k] += slots[((simdgroup + apart) * C + k) * 32 + lane];
        slots[(simdgroup * C + k) * 32 + lane] = values[k];
      }
    }
  }
}

// Adds up the rows of the float matrix group.y in an order that the launch decides: C columns
// a lane, 32 lanes wide at most, and the simdgroups share the rows. A simdgroup loads B rows,
// a power of two, at a time, and adds them in pairs. slots has C·32 values for each simdgroup.
template <typename T, int C, int B>
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
    for (size_t begin = simdgroup; begin < rows; begin += size_t(simdgroups) * B) {
      float terms[B][C] = {};
      for (int b = 0; b < B && begin + size_t(b) * simdgroups < rows; b++) {
        read<C>(matrices + (begin + size_t(b) * simdgroups) * width, column, width, is_packed, terms[b]);
      }
      for (int apart = 1; apart < B; apart *= 2) {
        for (int b = 0; b < B; b += 2 * apart) {
          for (int k = 0; k < C; k++) {
            terms[b][k] += terms[b + apart][k];
          }
        }
      }
      for (int k = 0; k < C; k++) {
        values[k] += terms[0][k];
      }
    }
  }
  add_simdgroups<C>(values, slots, lane, simdgroup, simdgroups);
  if (simdgroup == 0 && column < width) {
    device T* out = sums + size_t(group.y) * width;
    write<C>(out, column, width, packed<C>(out, width), values);
  }
}
