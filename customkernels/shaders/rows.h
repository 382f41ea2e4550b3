// The rows and columns of a matrix that a threadgroup and its threads process.
//
// A row is divided into vectors of VEC elements. Vector v of a thread begins at column (v·threads + thread)·VEC, so
// neighboring threads access neighboring vectors. A kernel keeps the first VECS_PER_THREAD vectors of each thread in
// registers.

#include "reductions.h"

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

// Adds the squares of the thread's elements of a row from column `first` on.
template <int VEC, typename T>
inline void add_row_squares(device const T* row, size_t first, Columns<VEC> columns, thread float* squares) {
  for (size_t column = first; column < columns.width; column += columns.stride) {
    float xs[VEC];
    columns.load(row, column, xs);
    add_squares<VEC>(xs, squares);
  }
}
