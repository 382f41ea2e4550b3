// Backward pass of the RMS norm in three kernels, for comparison with rms_norm_backward.metal, which has the formulas.
//
//   rms_norm_compute_rms_inv  r of every row
//   rms_norm_backward_dx      dx
//   rms_norm_backward_dw      dw
//
// Reference: compare/oracle/rmsnorm.go.
//
// Launch, with _dw for rms_norm_backward_dw:
//
//   parameter        meaning                                constraint
//   VEC              elements per vector                    a power of two
//   VECS_PER_THREAD  vectors of a row that a thread holds   any
//   MAX_SIMDGROUPS   simdgroups of _dw per group, at most
//   HAS_WEIGHT       use w                                  without it, w is not accessed
//   threads          per group                              32·n up to 1024, or below 32; in _dw 32·n or 1
//   groups           share the rows (group_rows)            any; in _dw one per VEC·min(threads, 32) columns
//
// Device traffic in elements of T: N·D, 3·N·D (if the registers hold a row) and 2·N·D for the three kernels.

#include "rms_norm.h"

// Computes rms_inv[row] = r.
template <typename T, int VEC>
[[kernel]] void rms_norm_compute_rms_inv(
    device const T* x [[buffer(0)]],
    constant uint& rows [[buffer(1)]],
    constant uint& width [[buffer(2)]],
    constant float& eps [[buffer(3)]],
    device float* rms_inv [[buffer(4)]],
    uint group [[threadgroup_position_in_grid]],
    uint groups [[threadgroups_per_grid]],
    uint thread_index [[thread_position_in_threadgroup]],
    uint threads [[threads_per_threadgroup]],
    uint lane [[thread_index_in_simdgroup]],
    uint simdgroup [[simdgroup_index_in_threadgroup]],
    uint simdgroups [[simdgroups_per_threadgroup]]) {
  threadgroup float scratch[2][32];
  const Columns<VEC> columns = row_columns<VEC>(thread_index, threads, width, vec_aligned<VEC>(x, width));
  uint buffer = 0;
  const GroupRows own_rows = group_rows(group, groups, rows, threads);
  for (uint row = own_rows.first; row < own_rows.end; row += own_rows.step, buffer ^= 1) {
    float squares[VEC] = {};
    add_row_squares(x + size_t(row) * width, columns.first, columns, squares);
    const float sum = threadgroup_sum(Pairwise<VEC>::sum(squares), scratch[buffer], lane, simdgroup, simdgroups);
    if (thread_index == 0) {
      rms_inv[row] = rsqrt(sum / float(width) + eps);
    }
  }
}

// Returns the sum of g·x over the thread's elements of a row. It stores the thread's first VECS_PER_THREAD vectors of x
// and g in xs and gs. ws has the same vectors of the weight.
template <bool HAS_WEIGHT, int VECS_PER_THREAD, int VEC, typename T>
inline float row_products(
    device const T* x,
    device const T* w,
    device const T* dy,
    Columns<VEC> columns,
    thread const float (*ws)[VEC],
    thread float (*xs)[VEC],
    thread float (*gs)[VEC]) {
  float products[VEC] = {};
  for (int v = 0; v < VECS_PER_THREAD && columns.contain(v); v++) {
    float dys[VEC];
    load_x_dy_g<HAS_WEIGHT>(x, dy, columns.at(v), columns, ws[v], xs[v], dys, gs[v]);
    add_products<VEC>(gs[v], xs[v], products);
  }
  for (size_t column = columns.at(VECS_PER_THREAD); column < columns.width; column += columns.stride) {
    float xs1[VEC], g1[VEC];
    load_x_g<HAS_WEIGHT>(x, w, dy, column, columns, xs1, g1);
    add_products<VEC>(g1, xs1, products);
  }
  return Pairwise<VEC>::sum(products);
}

// Computes dx from x, w, dy and rms_inv. Elements of a row that do not fit the registers are loaded twice.
template <typename T, int VEC, int VECS_PER_THREAD, bool HAS_WEIGHT>
[[kernel]] void rms_norm_backward_dx(
    device const T* x [[buffer(0)]],
    device const T* w [[buffer(1)]],
    device const T* dy [[buffer(2)]],
    device const float* rms_inv [[buffer(3)]],
    constant uint& rows [[buffer(4)]],
    constant uint& width [[buffer(5)]],
    device T* dx [[buffer(6)]],
    uint group [[threadgroup_position_in_grid]],
    uint groups [[threadgroups_per_grid]],
    uint thread_index [[thread_position_in_threadgroup]],
    uint threads [[threads_per_threadgroup]],
    uint lane [[thread_index_in_simdgroup]],
    uint simdgroup [[simdgroup_index_in_threadgroup]],
    uint simdgroups [[simdgroups_per_threadgroup]]) {
  threadgroup float scratch[2][32];
  const bool is_aligned = vec_aligned<VEC>(x, width) && vec_aligned<VEC>(dy, width) && vec_aligned<VEC>(dx, width) &&
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
    // One lane loads r for all lanes.
    const float r = simd_broadcast_first(lane == 0 ? rms_inv[row] : 0.0f);
    float xs[VECS_PER_THREAD][VEC];
    float gs[VECS_PER_THREAD][VEC];
    const float own = row_products<HAS_WEIGHT, VECS_PER_THREAD>(x + start, w, dy + start, columns, ws, xs, gs);
    const float s = threadgroup_sum(own, scratch[buffer], lane, simdgroup, simdgroups);
    const float c = s * r * r / float(width);

    for (int v = 0; v < VECS_PER_THREAD && columns.contain(v); v++) {
      float dxs[VEC];
      input_gradient<VEC>(xs[v], gs[v], r, c, dxs);
      columns.store(dx + start, columns.at(v), dxs);
    }
    for (size_t column = columns.at(VECS_PER_THREAD); column < width; column += columns.stride) {
      float xs1[VEC], g1[VEC], dx1[VEC];
      load_x_g<HAS_WEIGHT>(x + start, w, dy + start, column, columns, xs1, g1);
      input_gradient<VEC>(xs1, g1, r, c, dx1);
      columns.store(dx + start, column, dx1);
    }
  }
}

// Computes dw[column] = Σ_rows dy·x·rms_inv. A lane sums VEC neighboring columns, so a simdgroup loads neighboring
// elements. The simdgroups of a group share the rows.
template <typename T, int VEC, int MAX_SIMDGROUPS>
[[kernel]] void rms_norm_backward_dw(
    device const T* x [[buffer(0)]],
    device const T* dy [[buffer(1)]],
    device const float* rms_inv [[buffer(2)]],
    constant uint& rows [[buffer(3)]],
    constant uint& width [[buffer(4)]],
    device T* dw [[buffer(5)]],
    uint group [[threadgroup_position_in_grid]],
    uint threads [[threads_per_threadgroup]],
    uint lane [[thread_index_in_simdgroup]],
    uint simdgroup [[simdgroup_index_in_threadgroup]],
    uint simdgroups [[simdgroups_per_threadgroup]]) {
  threadgroup float scratch[MAX_SIMDGROUPS * VEC * 32];
  const uint lanes = min(threads, 32u);
  const size_t column = (size_t(group) * lanes + lane) * VEC;
  const bool is_aligned = vec_aligned<VEC>(x, width) && vec_aligned<VEC>(dy, width);

  float sums[VEC] = {};
  for (size_t begin = simdgroup; begin < rows; begin += size_t(simdgroups) * lanes) {
    float partial[VEC] = {};  // of up to 32 rows; a sum of partial sums has smaller rounding errors
    // Each lane loads rms_inv of one row for all lanes.
    const size_t own = begin + size_t(simdgroups) * lane;
    const float own_r = own < rows ? rms_inv[own] : 0;
    for (uint i = 0; i < lanes && begin + size_t(simdgroups) * i < rows; i++) {
      const float r = simd_shuffle(own_r, i);
      const size_t start = (begin + size_t(simdgroups) * i) * width;
      if (column < width) {
        float xs[VEC], dys[VEC];
        load_vec<VEC>(x + start, column, width, is_aligned, xs);
        load_vec<VEC>(dy + start, column, width, is_aligned, dys);
        add_weight_gradient<VEC>(xs, dys, r, partial);
      }
    }
    add_values<VEC>(partial, sums);
  }
  sum_simdgroups<VEC>(sums, scratch, lane, simdgroup, simdgroups);
  if (simdgroup == 0 && column < width) {
    store_vec<VEC>(dw, column, width, vec_aligned<VEC>(dw, width), sums);
  }
}
