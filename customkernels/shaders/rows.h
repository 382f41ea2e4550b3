// Loads, stores and reductions of the kernels whose threadgroups process rows of a matrix.
//
// A row is divided into vectors of VEC elements. Vector v of a thread begins at column (v·threads + thread)·VEC, so
// neighboring threads access neighboring vectors. A kernel keeps the first VECS_PER_THREAD vectors of each thread in
// registers.
//
// A matrix is aligned if its rows consist of whole vectors at addresses that are aligned for them. Vectors of other
// matrices are loaded and stored by element.

#include <metal_stdlib>
using namespace metal;

// VEC elements, aligned so that loads and stores move up to 16 bytes at a time.
template <typename T, int VEC>
struct alignas(VEC * sizeof(T) < 16 ? VEC * sizeof(T) : 16) Vec {
  T values[VEC];
};

// Loads, stores and conversions of a vector. An executor that defines MLXG_VECTOR_CONVERSIONS has vector instructions
// for them, which accept any address.
//
//   vec_aligned         reports whether rows of `width` elements at p are aligned for vectors of VEC elements
//   convert_vec         converts VEC elements to V
//   load_aligned_vec    loads the aligned vector at `column` and converts it to V
//   store_aligned_vec   rounds a vector to T and stores it at `column`, aligned
//   load_partial_vec    loads the vector at `column` and converts it to V; elements at and beyond `width` are zero
//   store_partial_vec   rounds a vector to T and stores its elements below `width` at `column`
//   load_words          copies the aligned vector at `column` to `words`
//   prefetch_load       begins to load the vector at p, which need not be in the array, into the caches of a CPU
//   prefetch_store      does the same for a vector that the thread will store
#ifdef MLXG_VECTOR_CONVERSIONS

template <int VEC, typename T>
inline bool vec_aligned(device const T* p, size_t width) {
  return width % VEC == 0;
}

template <int VEC, typename V, typename FROM, typename TO>
inline void convert_vec(FROM from, TO to) {
  mlxg::convert<VEC>(from, to);
}

template <int VEC, typename T, typename V>
inline void load_aligned_vec(device const T* row, size_t column, thread V* values) {
  mlxg::convert<VEC>(row + column, values);
}

template <int VEC, typename T, typename V>
inline void store_aligned_vec(device T* row, size_t column, thread const V* values) {
  mlxg::convert<VEC>(values, row + column);
}

template <int VEC, typename T, typename V>
inline void load_partial_vec(device const T* row, size_t column, size_t width, thread V* values) {
  mlxg::convert_first_of<VEC>(row + column, column < width ? width - column : 0, values);
}

template <int VEC, typename T, typename V>
inline void store_partial_vec(device T* row, size_t column, size_t width, thread const V* values) {
  mlxg::convert_first(values, column < width ? width - column : 0, row + column);
}

template <int VEC, typename T, typename WORDS>
inline void load_words(device const T* row, size_t column, thread WORDS& words) {
  mlxg::convert<VEC>(row + column, reinterpret_cast<thread T*>(words.values));
}

template <int VEC, typename T>
inline void prefetch_load(device const T* p) {
  mlxg::prefetch<VEC * sizeof(T), false>(p);
}

template <int VEC, typename T>
inline void prefetch_store(device T* p) {
  mlxg::prefetch<VEC * sizeof(T), true>(p);
}

#else

template <int VEC, typename T>
inline bool vec_aligned(device const T* p, size_t width) {
  return width % VEC == 0 && reinterpret_cast<size_t>(p) % alignof(Vec<T, VEC>) == 0;
}

template <int VEC, typename V, typename FROM, typename TO>
inline void convert_vec(FROM from, TO to) {
  for (int k = 0; k < VEC; k++) {
    to[k] = V(from[k]);
  }
}

template <int VEC, typename T, typename V>
inline void load_aligned_vec(device const T* row, size_t column, thread V* values) {
  const Vec<T, VEC> vec = reinterpret_cast<device const Vec<T, VEC>*>(row)[column / VEC];
  convert_vec<VEC, V>(vec.values, values);
}

template <int VEC, typename T, typename V>
inline void store_aligned_vec(device T* row, size_t column, thread const V* values) {
  Vec<T, VEC> vec;
  convert_vec<VEC, T>(values, vec.values);
  reinterpret_cast<device Vec<T, VEC>*>(row)[column / VEC] = vec;
}

template <int VEC, typename T, typename V>
inline void load_partial_vec(device const T* row, size_t column, size_t width, thread V* values) {
  for (int k = 0; k < VEC; k++) {
    values[k] = column + k < width ? V(row[column + k]) : V(0);
  }
}

template <int VEC, typename T, typename V>
inline void store_partial_vec(device T* row, size_t column, size_t width, thread const V* values) {
  for (int k = 0; k < VEC && column + k < width; k++) {
    row[column + k] = T(values[k]);
  }
}

template <int VEC, typename T, typename WORDS>
inline void load_words(device const T* row, size_t column, thread WORDS& words) {
  words = reinterpret_cast<device const WORDS*>(row)[column / VEC];
}

template <int VEC, typename T>
inline void prefetch_load(device const T* p) {}

template <int VEC, typename T>
inline void prefetch_store(device T* p) {}

#endif

// Loads the vector at `column` and converts it to V. Elements at and beyond column `width` are zero.
template <int VEC, typename T, typename V>
inline void load_vec(device const T* row, size_t column, size_t width, bool is_aligned, thread V* values) {
  if (VEC == 1 || is_aligned) {
    load_aligned_vec<VEC>(row, column, values);
  } else if (column + VEC <= width) {
    convert_vec<VEC, V>(row + column, values);
  } else {
    load_partial_vec<VEC>(row, column, width, values);
  }
}

// Rounds a vector to T and stores it at `column`. Elements at and beyond column `width` are not stored.
template <int VEC, typename T, typename V>
inline void store_vec(device T* row, size_t column, size_t width, bool is_aligned, thread const V* values) {
  if (VEC == 1 || is_aligned) {
    store_aligned_vec<VEC>(row, column, values);
  } else if (column + VEC <= width) {
    convert_vec<VEC, T>(values, row + column);
  } else {
    store_partial_vec<VEC>(row, column, width, values);
  }
}

// The rows of a threadgroup: first, first + step, …, below `end`.
struct GroupRows {
  uint first, step, end;
};

// Returns the rows of a threadgroup of kernels that share the rows evenly. A group of one thread has consecutive rows,
// which a CPU prefetches.
inline GroupRows group_rows(uint group, uint groups, uint rows, uint threads) {
  if (threads > 1) {
    return {group, groups, rows};
  }
  return {uint(size_t(rows) * group / groups), 1, uint(size_t(rows) * (group + 1) / groups)};
}

// The columns of one thread. Its vector v begins at column first + v·stride. is_aligned says whether all matrices that
// are accessed with these columns are aligned.
template <int VEC>
struct Columns {
  size_t first;
  size_t stride;
  size_t width;
  bool is_aligned;

  size_t at(int v) const { return first + v * stride; }

  bool contain(int v) const { return first + v * stride < width; }

  template <typename T>
  void load(device const T* row, size_t column, thread float* values) const {
    load_vec<VEC>(row, column, width, is_aligned, values);
  }

  template <typename T>
  void store(device T* row, size_t column, thread const float* values) const {
    store_vec<VEC>(row, column, width, is_aligned, values);
  }
};

// Returns the columns of a thread of a group that processes whole rows.
template <int VEC>
inline Columns<VEC> row_columns(uint thread_index, uint threads, size_t width, bool is_aligned) {
  return Columns<VEC>{size_t(thread_index) * VEC, size_t(threads) * VEC, width, is_aligned};
}

// Returns the columns of a thread of a group that processes block `block` of the columns. A block has VECS_PER_THREAD
// vectors per thread.
template <int VEC, int VECS_PER_THREAD>
inline Columns<VEC> column_block(uint block, uint thread_index, uint threads, size_t width, bool is_aligned) {
  const size_t stride = size_t(threads) * VEC;
  return Columns<VEC>{block * VECS_PER_THREAD * stride + size_t(thread_index) * VEC, stride, width, is_aligned};
}

// Loads the first VECS_PER_THREAD vectors of a thread from a row.
template <int VECS_PER_THREAD, int VEC, typename T>
inline void load_vecs(device const T* row, Columns<VEC> columns, thread float (*values)[VEC]) {
  for (int v = 0; v < VECS_PER_THREAD && columns.contain(v); v++) {
    columns.load(row, columns.at(v), values[v]);
  }
}

// Loads the vector of the weight at `column`, if there is a weight.
template <bool HAS_WEIGHT, int VEC, typename T>
inline void load_weight(device const T* w, size_t column, Columns<VEC> columns, thread float* values) {
  if (HAS_WEIGHT) {
    columns.load(w, column, values);
  }
}

// Stores the first VECS_PER_THREAD vectors of a thread to a row.
template <int VECS_PER_THREAD, int VEC, typename T>
inline void store_vecs(device T* row, Columns<VEC> columns, bool is_aligned, thread const float (*values)[VEC]) {
  for (int v = 0; v < VECS_PER_THREAD && columns.contain(v); v++) {
    store_vec<VEC>(row, columns.at(v), columns.width, is_aligned, values[v]);
  }
}

// VECS_PER_THREAD vectors of one row in a thread's registers. HELD_T is T or float. The elements are stored as 32-bit
// words. A compiler may unpack a vector of halves right after its load, so the thread would wait for the load long
// before it uses the elements.
template <typename HELD_T, int VEC, int VECS_PER_THREAD>
struct HeldVecs {
  Vec<uint, (VEC * sizeof(HELD_T) + 3) / 4> vecs[VECS_PER_THREAD];
};

// Loads vector v of an aligned row, which begins at `column`, into `held`. If HELD_T is T, the thread does not wait for
// the load.
template <typename T, typename HELD_T, int VEC, int VECS_PER_THREAD>
inline void load_vec_held(
    device const T* row, int v, size_t column, size_t width, thread HeldVecs<HELD_T, VEC, VECS_PER_THREAD>& held) {
  if (is_same<T, HELD_T>::value) {
    load_words<VEC>(row, column, held.vecs[v]);
  } else {
    load_vec<VEC>(row, column, width, true, reinterpret_cast<thread HELD_T*>(held.vecs[v].values));
  }
}

// Pairwise reduces N values, a power of two, in pairs of values k and k + N/2.
template <int N>
struct Pairwise {
  static float sum(thread const float* values) {
    float sums[N / 2];
    for (int k = 0; k < N / 2; k++) {
      sums[k] = values[k] + values[k + N / 2];
    }
    return Pairwise<N / 2>::sum(sums);
  }

  static float maximum(thread const float* values) {
    float maxima[N / 2];
    for (int k = 0; k < N / 2; k++) {
      maxima[k] = max(values[k], values[k + N / 2]);
    }
    return Pairwise<N / 2>::maximum(maxima);
  }
};
template <>
struct Pairwise<1> {
  static float sum(thread const float* values) { return values[0]; }
  static float maximum(thread const float* values) { return values[0]; }
};

// Adds a vector to a sum.
template <int VEC>
inline void add_values(thread const float* values, thread float* sums) {
  for (int k = 0; k < VEC; k++) {
    sums[k] += values[k];
  }
}

// Adds the products of two vectors.
template <int VEC>
inline void add_products(thread const float* a, thread const float* b, thread float* products) {
  for (int k = 0; k < VEC; k++) {
    products[k] += a[k] * b[k];
  }
}

// Adds the squares of a vector.
template <int VEC>
inline void add_squares(thread const float* values, thread float* squares) {
  for (int k = 0; k < VEC; k++) {
    squares[k] += values[k] * values[k];
  }
}

// Adds the squares of the thread's elements of a row from column `first` on.
template <int VEC, typename T>
inline void add_row_squares(device const T* row, size_t first, Columns<VEC> columns, thread float* squares) {
  for (size_t column = first; column < columns.width; column += columns.stride) {
    float xs[VEC];
    columns.load(row, column, xs);
    add_squares<VEC>(xs, squares);
  }
}

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
  for (uint g = 0; g < simdgroups; g++) {
    value = max(value, scratch[g]);
  }
  return value;
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

// Sums the rows of float matrix group.y in an order that depends only on the launch geometry. A lane sums VEC columns,
// and a simdgroup sums VEC·min(threads, 32). The simdgroups share the rows. A simdgroup loads ROWS_PER_STEP rows at a
// time, a power of two, and adds them in pairs. scratch has VEC·32 elements per simdgroup.
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
    device T* out = sums + size_t(group.y) * width;
    store_vec<VEC>(out, column, width, vec_aligned<VEC>(out, width), values);
  }
}
