// Softmax of N rows of width D: y_j = exp(x_j − m) / Σ_k exp(x_k − m), m = max_k x_k.
//
// Reference: compare/oracle/softmax.go.
//
// Storage is T, arithmetic float. The order of the sum depends only on the launch geometry, so results have the same
// bits in every run.
//
// A row that contains NaN or +∞, or only −∞, becomes NaN, because x − m is NaN if x is NaN or if x = m is infinite.
//
// Launch:
//
//   parameter        meaning                                constraint
//   VEC              elements per vector                    a power of two
//   VECS_PER_THREAD  vectors of a row that a thread holds   any
//   threads          per group                              32·n up to 1024, or below 32
//   groups           share the rows (group_rows)            any
//
// Device traffic in elements of T: 2·N·D, and 2 more per element that does not fit the registers.

#include "rows.h"

// Loads the vector at `column`. Elements beyond the end of the row are −∞.
template <int VEC, typename T>
inline void load_logits(device const T* row, size_t column, Columns<VEC> columns, thread float* x) {
  columns.load(row, column, x);
  if (column + VEC > columns.width) {
    for (int k = 0; k < VEC; k++) {
      x[k] = column + k < columns.width ? x[k] : -INFINITY;
    }
  }
}

// Updates the maximum of each component. A NaN does not change it.
template <int VEC>
inline void update_maxima(thread const float* x, thread float* maxima) {
  for (int k = 0; k < VEC; k++) {
    maxima[k] = x[k] > maxima[k] ? x[k] : maxima[k];
  }
}

// Replaces x by exp(x − m) and adds it to sums.
template <int VEC>
inline void exponentiate(thread float* x, float m, thread float* sums) {
  for (int k = 0; k < VEC; k++) {
    x[k] = exp(x[k] - m);
    sums[k] += x[k];
  }
}

// Returns the maximum of the thread's elements of a row. Its first VECS_PER_THREAD vectors are loaded into `held`.
template <int VECS_PER_THREAD, int VEC, typename T>
inline float row_maximum(device const T* row, Columns<VEC> columns, thread float (*held)[VEC]) {
  float maxima[VEC];
  for (int k = 0; k < VEC; k++) {
    maxima[k] = -INFINITY;
  }
  for (int v = 0; v < VECS_PER_THREAD && columns.contain(v); v++) {
    load_logits(row, columns.at(v), columns, held[v]);
    update_maxima<VEC>(held[v], maxima);
  }
  for (size_t column = columns.at(VECS_PER_THREAD); column < columns.width; column += columns.stride) {
    float xs1[VEC];
    load_logits(row, column, columns, xs1);
    update_maxima<VEC>(xs1, maxima);
  }
  float m = maxima[0];
  for (int k = 1; k < VEC; k++) {
    m = maxima[k] > m ? maxima[k] : m;
  }
  return m;
}

// Returns Σ exp(x − m) over the thread's elements of a row. `held` has its first VECS_PER_THREAD vectors, which become
// their exponentials.
template <int VECS_PER_THREAD, int VEC, typename T>
inline float exponentiate_row(device const T* row, Columns<VEC> columns, float m, thread float (*held)[VEC]) {
  float sums[VEC] = {};
  for (int v = 0; v < VECS_PER_THREAD && columns.contain(v); v++) {
    exponentiate<VEC>(held[v], m, sums);
  }
  for (size_t column = columns.at(VECS_PER_THREAD); column < columns.width; column += columns.stride) {
    float xs1[VEC];
    load_logits(row, column, columns, xs1);
    exponentiate<VEC>(xs1, m, sums);
  }
  return Pairwise<VEC>::sum(sums);
}

// Stores exponentials / sum at `column`.
template <int VEC, typename T>
inline void store_quotients(
    device T* row, size_t column, Columns<VEC> columns, thread const float* exponentials, float sum) {
  float y[VEC];
  for (int k = 0; k < VEC; k++) {
    y[k] = exponentials[k] / sum;
  }
  columns.store(row, column, y);
}

template <typename T, int VEC, int VECS_PER_THREAD>
[[kernel]] void softmax_forward(
    device const T* x [[buffer(0)]],
    constant uint& rows [[buffer(1)]],
    constant uint& width [[buffer(2)]],
    device T* y [[buffer(3)]],
    uint group [[threadgroup_position_in_grid]],
    uint groups [[threadgroups_per_grid]],
    uint thread_index [[thread_position_in_threadgroup]],
    uint threads [[threads_per_threadgroup]],
    uint lane [[thread_index_in_simdgroup]],
    uint simdgroup [[simdgroup_index_in_threadgroup]],
    uint simdgroups [[simdgroups_per_threadgroup]]) {
  threadgroup float max_scratch[32];
  threadgroup float scratch[32];
  const Columns<VEC> columns =
      row_columns<VEC>(thread_index, threads, width, vec_aligned<VEC>(x, width) && vec_aligned<VEC>(y, width));

  const GroupRows own_rows = group_rows(group, groups, rows, threads);
  for (uint row = own_rows.first; row < own_rows.end; row += own_rows.step) {
    device const T* x_row = x + size_t(row) * width;
    device T* y_row = y + size_t(row) * width;
    float held[VECS_PER_THREAD][VEC];
    const float own_max = row_maximum<VECS_PER_THREAD>(x_row, columns, held);
    const float m = threadgroup_max(own_max, max_scratch, lane, simdgroup, simdgroups);
    const float own_sum = exponentiate_row<VECS_PER_THREAD>(x_row, columns, m, held);
    const float sum = threadgroup_sum(own_sum, scratch, lane, simdgroup, simdgroups);

    for (int v = 0; v < VECS_PER_THREAD && columns.contain(v); v++) {
      store_quotients(y_row, columns.at(v), columns, held[v], sum);
    }
    for (size_t column = columns.at(VECS_PER_THREAD); column < width; column += columns.stride) {
      float xs1[VEC], unused[VEC] = {};
      load_logits(x_row, column, columns, xs1);
      exponentiate<VEC>(xs1, m, unused);
      store_quotients(y_row, column, columns, xs1, sum);
    }
  }
}
