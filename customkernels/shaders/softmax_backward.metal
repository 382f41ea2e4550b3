// Backward pass of the softmax, for each of N rows of width D.
//
// Forward, y_j = exp(x_j) / Σ_k exp(x_k). With dy the cotangent of y and ∂y_k/∂x_j = y_k·([j = k] − y_j):
//
//   dx_j = y_j · (dy_j − s),  s = Σ_k y_k · dy_k
//
// Reference: compare/oracle/softmax.go.
//
// Storage is T, arithmetic float. The order of the sum depends only on the launch geometry, so results have the same
// bits in every run.
//
// Launch:
//
//   parameter        meaning                                constraint
//   VEC              elements per vector                    a power of two
//   VECS_PER_THREAD  vectors of a row that a thread holds   any
//   BYPASS_CACHES    how to store dx (RowWriter)            false on a GPU and for unaligned rows
//   threads          per group                              32·n up to 1024, or below 32
//   groups           share the rows (group_rows)            any
//
// Device traffic in elements of T: 3·N·D, and 2 more per element that does not fit the registers.

#include "rows.h"

// The bytes of the next row of y, and of dy, that a CPU prefetches. The second-level cache holds them beside the rows
// in use.
constant constexpr uint PREFETCHED_BYTES = 64 << 10;

// Prefetches in the pass that sums a row: the row of dx or, if dx bypasses the caches, the next row of y. Both passes
// then access memory.
template <bool BYPASS_CACHES, int VEC, typename T>
inline void prefetch_beside_sums(device const T* y, device T* dx, size_t column, size_t width) {
  if (!BYPASS_CACHES) {
    prefetch_store<VEC>(dx + column);
  } else if (column * sizeof(T) < PREFETCHED_BYTES) {
    prefetch_next_row<BYPASS_CACHES, VEC>(y + width + column);
  }
}

// Prefetches in the pass that stores dx: the next row of dy and, unless the other pass has done it, of y.
template <bool BYPASS_CACHES, int VEC, typename T>
inline void prefetch_beside_stores(device const T* next_y, device const T* next_dy, size_t column) {
  if (column * sizeof(T) < PREFETCHED_BYTES) {
    if (!BYPASS_CACHES) {
      prefetch_next_row<BYPASS_CACHES, VEC>(next_y + column);
    }
    prefetch_next_row<BYPASS_CACHES, VEC>(next_dy + column);
  }
}

// Returns Σ y·dy over the thread's elements of a row. Its first VECS_PER_THREAD vectors are loaded into ys and dys.
template <bool BYPASS_CACHES, int VECS_PER_THREAD, int VEC, typename T>
inline float row_products(
    device const T* y,
    device const T* dy,
    device T* dx,
    Columns<VEC> columns,
    thread float (*ys)[VEC],
    thread float (*dys)[VEC]) {
  float products[VEC] = {};
  for (int v = 0; v < VECS_PER_THREAD && columns.contain(v); v++) {
    prefetch_beside_sums<BYPASS_CACHES, VEC>(y, dx, columns.at(v), columns.width);
    columns.load(y, columns.at(v), ys[v]);
    columns.load(dy, columns.at(v), dys[v]);
    add_products<VEC>(ys[v], dys[v], products);
  }
  for (size_t column = columns.at(VECS_PER_THREAD); column < columns.width; column += columns.stride) {
    float ys1[VEC], dys1[VEC];
    prefetch_beside_sums<BYPASS_CACHES, VEC>(y, dx, column, columns.width);
    columns.load(y, column, ys1);
    columns.load(dy, column, dys1);
    add_products<VEC>(ys1, dys1, products);
  }
  return Pairwise<VEC>::sum(products);
}

// Computes dx and stores it at `column`.
template <int VEC, typename T, bool BYPASS_CACHES>
inline void store_gradient(
    thread RowWriter<VEC, T, BYPASS_CACHES>& dx,
    size_t column,
    Columns<VEC> columns,
    thread const float* y,
    thread const float* dy,
    float s) {
  float dxs[VEC];
  for (int k = 0; k < VEC; k++) {
    dxs[k] = y[k] * (dy[k] - s);
  }
  dx.store(column, columns.width, columns.is_aligned, dxs);
}

template <typename T, int VEC, int VECS_PER_THREAD, bool BYPASS_CACHES>
[[kernel]] void softmax_backward(
    device const T* y [[buffer(0)]],
    device const T* dy [[buffer(1)]],
    constant uint& rows [[buffer(2)]],
    constant uint& width [[buffer(3)]],
    device T* dx [[buffer(4)]],
    uint group [[threadgroup_position_in_grid]],
    uint groups [[threadgroups_per_grid]],
    uint thread_index [[thread_position_in_threadgroup]],
    uint threads [[threads_per_threadgroup]],
    uint lane [[thread_index_in_simdgroup]],
    uint simdgroup [[simdgroup_index_in_threadgroup]],
    uint simdgroups [[simdgroups_per_threadgroup]]) {
  threadgroup float scratch[2][32];
  const bool is_aligned =
      BYPASS_CACHES || (vec_aligned<VEC>(y, width) && vec_aligned<VEC>(dy, width) && vec_aligned<VEC>(dx, width));
  const Columns<VEC> columns = row_columns<VEC>(thread_index, threads, width, is_aligned);

  uint buffer = 0;
  const GroupRows own_rows = group_rows(group, groups, rows, threads);
  for (uint row = own_rows.first; row < own_rows.end; row += own_rows.step, buffer ^= 1) {
    const size_t start = size_t(row) * width;
    float ys[VECS_PER_THREAD][VEC];
    float dys[VECS_PER_THREAD][VEC];
    const float own = row_products<BYPASS_CACHES, VECS_PER_THREAD>(y + start, dy + start, dx + start, columns, ys, dys);
    const size_t next = start + size_t(own_rows.step) * width;
    const float s = threadgroup_sum(own, scratch[buffer], lane, simdgroup, simdgroups);

    RowWriter<VEC, T, BYPASS_CACHES> row_of_dx;
    row_of_dx.begin_row(dx + start);
    for (int v = 0; v < VECS_PER_THREAD && columns.contain(v); v++) {
      prefetch_beside_stores<BYPASS_CACHES, VEC>(y + next, dy + next, columns.at(v));
      store_gradient(row_of_dx, columns.at(v), columns, ys[v], dys[v], s);
    }
    for (size_t column = columns.at(VECS_PER_THREAD); column < width; column += columns.stride) {
      float ys1[VEC], dys1[VEC];
      prefetch_beside_stores<BYPASS_CACHES, VEC>(y + next, dy + next, column);
      columns.load(y + start, column, ys1);
      columns.load(dy + start, column, dys1);
      store_gradient(row_of_dx, column, columns, ys1, dys1, s);
    }
    row_of_dx.end_row();
  }
}
