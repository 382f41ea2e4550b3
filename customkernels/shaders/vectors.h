// Vectors of VEC elements: loads, stores, conversions and sums.
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
//   prefetch_load       begins to load the vector at p, which need not be in the array, into a CPU's cache of LEVEL
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

template <int VEC, int LEVEL = 1, typename T>
inline void prefetch_load(device const T* p) {
  mlxg::prefetch<VEC * sizeof(T), false, LEVEL>(p);
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

template <int VEC, int LEVEL = 1, typename T>
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

// Stores the vectors of rows one after the other: begin_row, store for each vector from the first column on, and
// end_row. With BYPASS_CACHES, which only a CPU and aligned rows have, the lines of the rows bypass the caches.
template <int VEC, typename T, bool BYPASS_CACHES>
struct RowWriter {
  device T* row;

  void begin_row(device T* to) { row = to; }

  void store(size_t column, size_t width, bool is_aligned, thread const float* values) const {
    store_vec<VEC>(row, column, width, is_aligned, values);
  }

  void end_row() const {}
};
#ifdef MLXG_LINE_WRITER
template <int VEC, typename T>
struct RowWriter<VEC, T, true> {
  mlxg::line_writer<T, VEC> lines;

  void begin_row(device T* to) { lines.begin(to); }

  void store(size_t, size_t, bool, thread const float* values) { lines.store(values); }

  void end_row() { lines.end(); }
};
#endif

// Prefetches a vector of the next row, beside the current row. The first-level cache has no space for rows of a large
// result.
template <bool BYPASS_CACHES, int VEC, typename T>
inline void prefetch_next_row(device const T* p) {
  prefetch_load<VEC, BYPASS_CACHES ? 2 : 1>(p);
}

// Prefetches a vector of a row that a RowWriter will store.
template <bool BYPASS_CACHES, int VEC, typename T>
inline void prefetch_row_store(device T* p) {
  if (!BYPASS_CACHES) {
    prefetch_store<VEC>(p);
  }
}

// VECS_PER_THREAD vectors of one row in a thread's registers. HELD_T is T or float. The elements are stored as 32-bit
// words. A compiler may unpack a vector of halves right after its load, so the thread would wait for the load long
// before it uses the elements.
template <typename HELD_T, int VEC, int VECS_PER_THREAD>
struct HeldVecs {
  typedef Vec<uint, (VEC * sizeof(HELD_T) + 3) / 4> Words;
  Words vecs[VECS_PER_THREAD];
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

// Hides from the compiler how held vectors were computed. It then converts halves again at their next use, instead of
// keeping floats in twice the registers. And it keeps the floats of a weight, instead of converting them at each use.
template <typename HELD_T, int VEC, int VECS_PER_THREAD>
inline void hide_origin(thread HeldVecs<HELD_T, VEC, VECS_PER_THREAD>& held) {
#ifdef MLXG_COPIES_AHEAD
  for (int v = 0; v < VECS_PER_THREAD; v++) {
    for (size_t i = 0; i < sizeof(held.vecs[v]) / sizeof(uint); i++) {
      mlxg::make_anew(held.vecs[v].values[i]);
    }
  }
#endif
}

// Converts a held vector to float. The bits of a bfloat are the upper half of a float's, so a shift or a mask of the
// word converts it. NVIDIA's compiler needs two more instructions for the elements of a vector of bfloats.
template <typename T, int VEC, typename WORDS>
inline void convert_held(thread const WORDS& words, thread float* values) {
#ifndef MLXG_VECTOR_CONVERSIONS
  if (is_same<T, bfloat>::value && VEC % 2 == 0) {
    for (int k = 0; k < VEC; k += 2) {
      values[k] = as_type<float>(words.values[k / 2] << 16);
      values[k + 1] = as_type<float>(words.values[k / 2] & 0xffff0000u);
    }
    return;
  }
#endif
  convert_vec<VEC, float>(reinterpret_cast<thread const T*>(words.values), values);
}

// Copies of a thread's vectors of an aligned row to threadgroup memory. An executor that defines MLXG_COPIES_AHEAD
// copies asynchronously.
//
//   copy_vec_ahead          begins a copy; the thread must not use the memory before it has waited
//   end_copies_ahead        makes a group of the copies since the previous call
//   wait_for_copies_ahead   waits for all copies or, with LATER, for all but the last LATER groups
#ifdef MLXG_COPIES_AHEAD
template <typename WORDS, typename T>
inline void copy_vec_ahead(threadgroup WORDS* to, device const T* from) {
  mlxg::copy_ahead<sizeof(WORDS)>(mlxg::shared_address(to), from, true);
}
inline void end_copies_ahead() {
  mlxg::end_own_copies();
}
inline void wait_for_copies_ahead() {
  mlxg::wait_for_own_copies();
}
template <int LATER>
inline void wait_for_copies_ahead() {
  mlxg::wait_for_own_copies<LATER>();
}
#else
template <typename WORDS, typename T>
inline void copy_vec_ahead(threadgroup WORDS* to, device const T* from) {
  *to = *reinterpret_cast<device const WORDS*>(from);
}
inline void end_copies_ahead() {}
inline void wait_for_copies_ahead() {}
template <int LATER>
inline void wait_for_copies_ahead() {}
#endif

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
