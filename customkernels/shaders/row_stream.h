// The rows of x and dy in the backward pass of a norm, as a threadgroup processes them one after the other.
//
// A kernel goes over a row twice: first for sums, then for the gradient. A RowStream provides the elements in both
// passes. Template parameters select one of two cases:
//
//   aligned rows of at most 32   Registers hold the whole row. All loads of a row are issued before its first use. With
//   elements per thread          PREFETCH = 2 the loads of the next row are issued before the sums of the current one,
//                                with PREFETCH = 1 only those of x. With COPY_THREADS they are copies to threadgroup
//                                memory, which take no registers.
//   other rows                   Both passes load the elements from device memory. A CPU then has them in its caches,
//                                where a copy in thread memory would take more space.

#include "rows.h"

// Whether x, dy and the weight begin at multiples of 16 bytes in every launch of this program (Launch.AlignedInputs).
#ifdef MLXG_ALIGNED_INPUTS
constant constexpr bool ALIGNED_INPUTS = MLXG_ALIGNED_INPUTS;
#else
constant constexpr bool ALIGNED_INPUTS = false;
#endif

// Computes g = dy·w, the gradient with respect to the normalized x.
template <int VEC, bool HAS_WEIGHT>
inline void times_weight(thread const float* dy, thread const float* w, thread float* g) {
  for (int k = 0; k < VEC; k++) {
    g[k] = HAS_WEIGHT ? dy[k] * w[k] : dy[k];
  }
}

// Loads x, dy and g of the vector at `column` of a row. w has the vector of the weight.
template <bool HAS_WEIGHT, int VEC, typename T>
inline void load_x_dy_g(
    device const T* x,
    device const T* dy,
    size_t column,
    Columns<VEC> columns,
    thread const float* w,
    thread float* xs,
    thread float* dys,
    thread float* g) {
  columns.load(x, column, xs);
  columns.load(dy, column, dys);
  times_weight<VEC, HAS_WEIGHT>(dys, w, g);
}

// Loads x and g of the vector at `column` of a row.
template <bool HAS_WEIGHT, int VEC, typename T>
inline void load_x_g(
    device const T* x,
    device const T* w,
    device const T* dy,
    size_t column,
    Columns<VEC> columns,
    thread float* xs,
    thread float* g) {
  float dys[VEC], ws[VEC];
  columns.load(x, column, xs);
  columns.load(dy, column, dys);
  load_weight<HAS_WEIGHT>(w, column, columns, ws);
  times_weight<VEC, HAS_WEIGHT>(dys, ws, g);
}

// Loads the two statistics of a row, or zeros at and beyond row `rows`.
inline float2 load_statistics(device const float* statistics, size_t row, uint rows) {
  if (row >= rows) {
    return float2(0);
  }
  return float2(statistics[2 * row], statistics[2 * row + 1]);
}

// Stores the two statistics of a row.
inline void store_statistics(float2 values, device float* statistics, size_t row) {
  statistics[2 * row] = values.x;
  statistics[2 * row + 1] = values.y;
}

// The threads that process rows together: a threadgroup or one of its simdgroups.
struct RowThreads {
  uint group, groups;  // the index of these threads among all that share the rows
  uint index, count;   // of a thread
  uint lane, simdgroup, simdgroups;
};

// Returns the threads that process rows together: a simdgroup if ROWS_PER_GROUP is greater than 1, else a threadgroup.
template <int ROWS_PER_GROUP>
inline RowThreads row_threads(
    uint group, uint groups, uint thread_index, uint threads, uint lane, uint simdgroup, uint simdgroups) {
  if (ROWS_PER_GROUP == 1) {
    return {group, groups, thread_index, threads, lane, simdgroup, simdgroups};
  }
  return {group * ROWS_PER_GROUP + simdgroup, groups * ROWS_PER_GROUP, lane, 32, lane, 0, 1};
}

// The threadgroup memory in which the simdgroups of a threadgroup exchange the sums of VECS vectors per thread at a
// time. With copies these are all vectors of a thread, because GPUs with copies have more memory. Otherwise they are
// half of them. Neighboring lanes, and neighboring columns, are in different memory banks.
template <int ROWS_PER_GROUP, int VEC, int VECS_PER_THREAD, int COPY_THREADS>
struct GroupSums {
  static constexpr constant int VECS = COPY_THREADS > 0 ? VECS_PER_THREAD : (VECS_PER_THREAD + 1) / 2;
  static constexpr constant uint STRIDE = VEC > 1 ? 32 + 32 / VEC : 32;
  static constexpr constant int SIZE = ROWS_PER_GROUP > 1 ? ROWS_PER_GROUP * VECS * VEC * STRIDE : 1;

  static uint at(uint simdgroup, uint element, uint lane) {
    return (simdgroup * (VECS * VEC) + element) * STRIDE + lane;
  }
};

// The threadgroup memory for copies of x and dy: a buffer for the current row and one for the next. A thread copies and
// uses only its own vectors, THREADS apart, so copies need no barrier. THREADS is the size of the group, or 0 without
// copies.
template <typename T, int VEC, int VECS_PER_THREAD, int THREADS>
struct RowCopies {
  typedef typename HeldVecs<T, VEC, VECS_PER_THREAD>::Words Words;
  static constexpr constant int BUFFER = 2 * VECS_PER_THREAD * THREADS;
  static constexpr constant int SIZE = THREADS > 0 ? 2 * BUFFER : 1;
};

// One thread's access to the rows of x and dy and to the weight. The held vectors are arguments and not members, so
// that each array is a variable of its own. With FULL_ROWS the threads' vectors fill each row, so no load or store has
// a condition.
template <
    typename T,
    int VEC,
    int VECS_PER_THREAD,
    int PREFETCH,
    int COPY_THREADS,
    bool FULL_ROWS,
    bool HAS_WEIGHT,
    bool ALIGNED>
struct RowStream {
  typedef HeldVecs<T, VEC, VECS_PER_THREAD> Held;
  typedef HeldVecs<float, VEC, VECS_PER_THREAD> HeldWeight;  // converted once for all rows
  typedef RowCopies<T, VEC, VECS_PER_THREAD, COPY_THREADS> Copies;
  static constexpr constant bool WHOLE_ROWS = ALIGNED && VECS_PER_THREAD * VEC <= 32;
  static constexpr constant bool HAS_COPIES = WHOLE_ROWS && COPY_THREADS > 0;
  static constexpr constant bool IS_ALIGNED = ALIGNED;

  device const T* x;
  device const T* w;
  device const T* dy;
  size_t first;  // the thread's vector v begins at column first + v·stride
  size_t stride;
  size_t width;
  size_t row_step;           // elements from a row to the next one of the same threads
  threadgroup uint* copies;  // the thread's first vector of RowCopies

  size_t column(int v) const { return first + v * stride; }

  bool contains(int v) const { return v < VECS_PER_THREAD && (FULL_ROWS || first + v * stride < width); }

  // Loads all vectors of an aligned row.
  void hold(device const T* row, thread Held& held) const {
    for (int v = 0; contains(v); v++) {
      load_words<VEC>(row, column(v), held.vecs[v]);
    }
  }

  // Returns the place of vector v of x (array 0) or dy (array 1).
  threadgroup typename Copies::Words* copy_of(uint buffer, int array, int v) const {
    const uint at = buffer * Copies::BUFFER + (2 * v + array) * COPY_THREADS;
    return reinterpret_cast<threadgroup typename Copies::Words*>(copies) + at;
  }

  // Begins to copy a row to a buffer.
  void copy(size_t start, uint buffer) const {
    for (int v = 0; contains(v); v++) {
      copy_vec_ahead(copy_of(buffer, 0, v), x + start + column(v));
      copy_vec_ahead(copy_of(buffer, 1, v), dy + start + column(v));
    }
  }

  // Converts vector v of a row to float, from `held` or from device memory.
  void held_values(thread const Held& held, device const T* row, int v, thread float* values) const {
    if (WHOLE_ROWS) {
      convert_held<T, VEC>(held.vecs[v], values);
    } else {
      load_vec<VEC>(row, column(v), width, ALIGNED, values);
    }
  }

  // Loads the weight and the arrays of the first row that PREFETCH selects. Rows are given by the index of their first
  // element.
  void begin(bool has_rows, size_t start, thread HeldWeight& held_w, thread Held& held_x, thread Held& held_dy) const {
    for (int v = 0; WHOLE_ROWS && HAS_WEIGHT && contains(v); v++) {
      load_vec<VEC>(w, column(v), width, true, reinterpret_cast<thread float*>(held_w.vecs[v].values));
    }
    if (HAS_COPIES && HAS_WEIGHT) {
      hide_origin(held_w);
    }
    if (HAS_COPIES && has_rows) {
      copy(start, 0);
      end_copies_ahead();
    } else if (WHOLE_ROWS && PREFETCH > 0 && has_rows) {
      hold(x + start, held_x);
      if (PREFETCH > 1) {
        hold(dy + start, held_dy);
      }
    }
  }

  // Loads the arrays that PREFETCH selects of the next row and the others of the row at `start`, if registers hold
  // whole rows. buffer is 0 for the first row and alternates with 1.
  void begin_row(
      size_t start,
      bool is_last,
      uint buffer,
      thread Held& held_x,
      thread Held& held_dy,
      thread Held& next_x,
      thread Held& next_dy) const {
    if (HAS_COPIES) {
      if (!is_last) {
        copy(start + row_step, buffer ^ 1);
      }
      end_copies_ahead();
      wait_for_copies_ahead<1>();
      for (int v = 0; contains(v); v++) {
        held_x.vecs[v] = *copy_of(buffer, 0, v);
        held_dy.vecs[v] = *copy_of(buffer, 1, v);
      }
    } else if (WHOLE_ROWS) {
      if (PREFETCH == 0) {
        hold(x + start, held_x);
      }
      if (PREFETCH < 2) {
        hold(dy + start, held_dy);
      }
      if (PREFETCH > 0 && !is_last) {
        hold(x + start + row_step, next_x);
      }
      if (PREFETCH > 1 && !is_last) {
        hold(dy + start + row_step, next_dy);
      }
    }
  }

  // Returns vector v of x, dy and g in xs, dys and g.
  void load(
      size_t start,
      int v,
      thread const HeldWeight& held_w,
      thread const Held& held_x,
      thread const Held& held_dy,
      thread float* xs,
      thread float* dys,
      thread float* g) const {
    held_values(held_x, x + start, v, xs);
    held_values(held_dy, dy + start, v, dys);
    if (WHOLE_ROWS) {
      times_weight<VEC, HAS_WEIGHT>(dys, reinterpret_cast<thread const float*>(held_w.vecs[v].values), g);
      return;
    }
    float ws[VEC];
    if (HAS_WEIGHT) {
      load_vec<VEC>(w, column(v), width, ALIGNED, ws);
    }
    times_weight<VEC, HAS_WEIGHT>(dys, ws, g);
  }

  // Prefetches vector v of the next row.
  template <bool BYPASS_CACHES>
  void prefetch_next(size_t start, int v) const {
    prefetch_next_row<BYPASS_CACHES, VEC>(x + start + row_step + column(v));
    prefetch_next_row<BYPASS_CACHES, VEC>(dy + start + row_step + column(v));
  }

  // Makes the next row the current one.
  void end_row(
      bool is_last,
      thread Held& held_x,
      thread Held& held_dy,
      thread const Held& next_x,
      thread const Held& next_dy) const {
    if (WHOLE_ROWS && PREFETCH > 0 && !HAS_COPIES && !is_last) {
      held_x = next_x;
    }
    if (WHOLE_ROWS && PREFETCH > 1 && !HAS_COPIES && !is_last) {
      held_dy = next_dy;
    }
  }

  // Loads a row that only one pass uses, if registers hold whole rows.
  void hold_once(device const T* row, thread Held& held) const {
    if (WHOLE_ROWS) {
      hold(row, held);
    }
  }

  // Converts vector v of a row that only one pass uses to float.
  void load_once(thread const Held& held, device const T* row, int v, thread float* values) const {
    if (WHOLE_ROWS) {
      held_values(held, row, v, values);
    } else {
      load_vec<VEC>(row, column(v), width, ALIGNED, values);
    }
  }

  // Stores vector v of a row.
  template <typename V>
  void store(device V* row, int v, thread const float* values) const {
    store_vec<VEC>(row, column(v), width, ALIGNED, values);
  }

  // Stores the sums of a threadgroup's rows in `row`. Simdgroups with rows of their own exchange their sums through
  // scratch, which has GroupSums::SIZE elements.
  template <int ROWS_PER_GROUP>
  void store_group_sums(
      device float* row, thread float (*sums)[VEC], threadgroup float* scratch, uint lane, uint simdgroup) const {
    typedef GroupSums<ROWS_PER_GROUP, VEC, VECS_PER_THREAD, COPY_THREADS> Sums;
    for (int v = 0; ROWS_PER_GROUP == 1 && contains(v); v++) {
      store(row, v, sums[v]);
    }
    for (int begin = 0; ROWS_PER_GROUP > 1 && begin < VECS_PER_THREAD; begin += Sums::VECS) {
      threadgroup_barrier(mem_flags::mem_threadgroup);  // after the previous use of scratch
      for (int v = begin; v < begin + Sums::VECS && contains(v); v++) {
        for (int k = 0; k < VEC; k++) {
          scratch[Sums::at(simdgroup, (v - begin) * VEC + k, lane)] = sums[v][k];
        }
      }
      threadgroup_barrier(mem_flags::mem_threadgroup);
      const size_t end = min(width, (begin + Sums::VECS) * stride);
      for (size_t c = begin * stride + simdgroup * 32 + lane; c < end; c += ROWS_PER_GROUP * 32) {
        const uint element = uint(c / stride - begin) * VEC + c % VEC;
        float sum = scratch[Sums::at(0, element, c % stride / VEC)];
        for (uint s = 1; s < ROWS_PER_GROUP; s++) {
          sum += scratch[Sums::at(s, element, c % stride / VEC)];
        }
        row[c] = sum;
      }
    }
  }
};
