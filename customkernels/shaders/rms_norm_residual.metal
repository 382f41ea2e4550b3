// Forward passes of the RMS norm with a residual connection, for each of N rows of width D:
//
//   rms_norm_residual   out = residual + x·r·w,   r = rsqrt(mean(x²) + eps)
//   add_rms_norm        h = x + residual,  y = h·r·w,   r = rsqrt(mean(h²) + eps)
//
// Reference: compare/oracle/rmsnormresidual.go and addrmsnorm.go.
//
// Storage is T, arithmetic float. add_rms_norm rounds h to T before it normalizes, so y is the norm of the h that it
// returns. rms_norm_backward computes the gradients of both. For rms_norm_residual its inputs are x and, as dy, the
// cotangent of out, which is also the gradient of residual. For add_rms_norm its inputs are h as x, the cotangent of y
// as dy and the cotangent of h as dh.
//
// Launch:
//
//   parameter        meaning                                constraint
//   VEC              elements per vector                    a power of two
//   VECS_PER_THREAD  vectors of a row that a thread holds   any
//   HAS_WEIGHT       use w                                  without it, w is not accessed
//   threads          per group                              32·n up to 1024, or below 32
//   groups           share the rows (group_rows)            any
//
// Device traffic in elements of T: rms_norm_residual 3·N·D, add_rms_norm 4·N·D. Elements of x that do not fit the
// registers are read twice. add_rms_norm also reads the elements of residual at these columns twice.

#include "normalize.h"

// Returns Σ x² over the thread's elements of a row. Its first VECS_PER_THREAD vectors are loaded into `held`.
template <int VECS_PER_THREAD, int VEC, typename T>
inline float row_squares(device const T* row, Columns<VEC> columns, thread float (*held)[VEC]) {
  float squares[VEC] = {};
  for (int v = 0; v < VECS_PER_THREAD && columns.contain(v); v++) {
    columns.load(row, columns.at(v), held[v]);
    add_squares<VEC>(held[v], squares);
  }
  add_row_squares(row, columns.at(VECS_PER_THREAD), columns, squares);
  return Pairwise<VEC>::sum(squares);
}

// Stores residual + x·r·w of the vector at `column`.
template <bool HAS_WEIGHT, int VEC, typename T>
inline void store_normalized_sum(
    device const T* residual,
    device T* out,
    size_t column,
    Columns<VEC> columns,
    thread const float* x,
    float r,
    thread const float* w) {
  float sums[VEC], ys[VEC];
  columns.load(residual, column, sums);
  normalize<VEC, HAS_WEIGHT>(x, r, w, ys);
  add_values<VEC>(ys, sums);
  columns.store(out, column, sums);
}

template <typename T, int VEC, int VECS_PER_THREAD, bool HAS_WEIGHT>
[[kernel]] void rms_norm_residual(
    device const T* x [[buffer(0)]],
    device const T* residual [[buffer(1)]],
    device const T* w [[buffer(2)]],
    constant uint& rows [[buffer(3)]],
    constant uint& width [[buffer(4)]],
    constant float& eps [[buffer(5)]],
    device T* out [[buffer(6)]],
    uint group [[threadgroup_position_in_grid]],
    uint groups [[threadgroups_per_grid]],
    uint thread_index [[thread_position_in_threadgroup]],
    uint threads [[threads_per_threadgroup]],
    uint lane [[thread_index_in_simdgroup]],
    uint simdgroup [[simdgroup_index_in_threadgroup]],
    uint simdgroups [[simdgroups_per_threadgroup]]) {
  threadgroup float scratch[2][32];
  const bool is_aligned = vec_aligned<VEC>(x, width) && vec_aligned<VEC>(residual, width) &&
                          vec_aligned<VEC>(out, width) && (!HAS_WEIGHT || vec_aligned<VEC>(w, width));
  const Columns<VEC> columns = row_columns<VEC>(thread_index, threads, width, is_aligned);
  float ws[VECS_PER_THREAD][VEC];
  if (HAS_WEIGHT) {
    load_vecs<VECS_PER_THREAD>(w, columns, ws);
  }

  uint buffer = 0;
  const GroupRows own_rows = group_rows(group, groups, rows, threads);
  for (uint row = own_rows.first; row < own_rows.end; row += own_rows.step, buffer ^= 1) {
    const size_t start = size_t(row) * width;
    float xs[VECS_PER_THREAD][VEC];
    const float own = row_squares<VECS_PER_THREAD>(x + start, columns, xs);
    const float sum = threadgroup_sum(own, scratch[buffer], lane, simdgroup, simdgroups);
    const float r = rsqrt(sum / float(width) + eps);

    for (int v = 0; v < VECS_PER_THREAD && columns.contain(v); v++) {
      store_normalized_sum<HAS_WEIGHT>(residual + start, out + start, columns.at(v), columns, xs[v], r, ws[v]);
    }
    for (size_t column = columns.at(VECS_PER_THREAD); column < width; column += columns.stride) {
      float xs1[VEC], ws1[VEC];
      columns.load(x + start, column, xs1);
      load_weight<HAS_WEIGHT>(w, column, columns, ws1);
      store_normalized_sum<HAS_WEIGHT>(residual + start, out + start, column, columns, xs1, r, ws1);
    }
  }
}

// Loads h = x + residual, rounded to T, of the vector at `column`.
template <int VEC, typename T>
inline void load_sum(
    device const T* x, device const T* residual, size_t column, Columns<VEC> columns, thread float* h) {
  float xs[VEC], residuals[VEC];
  columns.load(x, column, xs);
  columns.load(residual, column, residuals);
  for (int k = 0; k < VEC; k++) {
    h[k] = float(T(xs[k] + residuals[k]));
  }
}

// Stores the thread's elements of h from column `first` on, and adds their squares.
template <int VEC, typename T>
inline void store_sums(
    device const T* x,
    device const T* residual,
    device T* h,
    size_t first,
    Columns<VEC> columns,
    thread float (&squares)[VEC]) {
  for (size_t column = first; column < columns.width; column += columns.stride) {
    float h1[VEC];
    load_sum(x, residual, column, columns, h1);
    add_squares<VEC>(h1, squares);
    columns.store(h, column, h1);
  }
}

template <typename T, int VEC, int VECS_PER_THREAD, bool HAS_WEIGHT>
[[kernel]] void add_rms_norm(
    device const T* x [[buffer(0)]],
    device const T* residual [[buffer(1)]],
    device const T* w [[buffer(2)]],
    constant uint& rows [[buffer(3)]],
    constant uint& width [[buffer(4)]],
    constant float& eps [[buffer(5)]],
    device T* h [[buffer(6)]],
    device T* y [[buffer(7)]],
    uint group [[threadgroup_position_in_grid]],
    uint groups [[threadgroups_per_grid]],
    uint thread_index [[thread_position_in_threadgroup]],
    uint threads [[threads_per_threadgroup]],
    uint lane [[thread_index_in_simdgroup]],
    uint simdgroup [[simdgroup_index_in_threadgroup]],
    uint simdgroups [[simdgroups_per_threadgroup]]) {
  threadgroup float scratch[2][32];
  const bool is_aligned = vec_aligned<VEC>(x, width) && vec_aligned<VEC>(residual, width) &&
                          vec_aligned<VEC>(h, width) && vec_aligned<VEC>(y, width) &&
                          (!HAS_WEIGHT || vec_aligned<VEC>(w, width));
  const Columns<VEC> columns = row_columns<VEC>(thread_index, threads, width, is_aligned);
  float ws[VECS_PER_THREAD][VEC];
  if (HAS_WEIGHT) {
    load_vecs<VECS_PER_THREAD>(w, columns, ws);
  }

  uint buffer = 0;
  const GroupRows own_rows = group_rows(group, groups, rows, threads);
  for (uint row = own_rows.first; row < own_rows.end; row += own_rows.step, buffer ^= 1) {
    const size_t start = size_t(row) * width;
    float hs[VECS_PER_THREAD][VEC];
    float squares[VEC] = {};
    for (int v = 0; v < VECS_PER_THREAD && columns.contain(v); v++) {
      load_sum(x + start, residual + start, columns.at(v), columns, hs[v]);
      add_squares<VEC>(hs[v], squares);
      columns.store(h + start, columns.at(v), hs[v]);
    }
    store_sums(x + start, residual + start, h + start, columns.at(VECS_PER_THREAD), columns, squares);
    const float sum = threadgroup_sum(Pairwise<VEC>::sum(squares), scratch[buffer], lane, simdgroup, simdgroups);
    const float r = rsqrt(sum / float(width) + eps);

    for (int v = 0; v < VECS_PER_THREAD && columns.contain(v); v++) {
      store_normalized<HAS_WEIGHT>(y + start, columns.at(v), columns, hs[v], r, ws[v]);
    }
    for (size_t column = columns.at(VECS_PER_THREAD); column < width; column += columns.stride) {
      float h1[VEC], ws1[VEC];
      load_sum(x + start, residual + start, column, columns, h1);
      load_weight<HAS_WEIGHT>(w, column, columns, ws1);
      store_normalized<HAS_WEIGHT>(y + start, column, columns, h1, r, ws1);
    }
  }
}
