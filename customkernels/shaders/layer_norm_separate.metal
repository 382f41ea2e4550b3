// Backward pass of the layer norm in three kernels, for comparison with layer_norm_backward.metal, which has the
// formulas.
//
//   layer_norm_bwd_input          dx, and μ and r of every row
//   layer_norm_bwd_gamma_partial  each group's partial sums of dw and db, for a block of columns
//   layer_norm_bwd_gamma_reduce   dw and db, from the partial sums; not launched if there is one group
//
// Reference: compare/oracle/layernorm.go.
//
// Launch, with _input, _partial and _reduce for the three kernels. _reduce has the geometry of column_sum.
//
//   parameter        meaning                                         constraint
//   VEC              elements per vector                             a power of two
//   VECS_PER_THREAD  vectors of a row that a thread holds            any; in _partial a simdgroup covers the block
//   PARTIAL_T        type of partial                                 float, or T if there is one group along y
//   ROWS_PER_STEP    rows that a simdgroup of _reduce loads at once  a power of two
//   MAX_SIMDGROUPS   simdgroups of _reduce per group, at most
//   HAS_WEIGHT       use w and write partial sums of dw              without it, w and x of _partial are not accessed
//   HAS_BIAS         write partial sums of db
//   threads          per group of _input                             32·n up to 1024, or below 32
//                    per group of _partial                           32·n up to 256, or 1
//   groups along x   share the rows (group_rows)                     any; in _partial one per block of columns
//   groups along y   of _partial, share the rows                     any
//
// Device traffic in elements of T: 3·N·D for _input, if the registers hold a row, and 2·N·D for _partial. The partial
// sums of dw and of db take 2·groups·D floats each.

#include "layer_norm.h"

// Returns the moments of a thread's elements of a row. It stores the thread's first VECS_PER_THREAD vectors of x and g
// in xs and gs. ws has the same vectors of the weight.
template <bool HAS_WEIGHT, int VECS_PER_THREAD, int VEC, typename T>
inline Moments<VEC> row_moments(
    device const T* x,
    device const T* w,
    device const T* dy,
    Columns<VEC> columns,
    thread const float (*ws)[VEC],
    thread float (*xs)[VEC],
    thread float (*gs)[VEC]) {
  Moments<VEC> moments = {};
  for (int v = 0; v < VECS_PER_THREAD && columns.contain(v); v++) {
    float dys[VEC];
    load_x_dy_g<HAS_WEIGHT>(x, dy, columns.at(v), columns, ws[v], xs[v], dys, gs[v]);
    add_to_moments<VEC, VEC>(v, xs[v], gs[v], columns.width - columns.at(v), moments);
  }
  uint v = VECS_PER_THREAD;
  for (size_t column = columns.at(VECS_PER_THREAD); column < columns.width; column += columns.stride, v++) {
    float xs1[VEC], g1[VEC];
    load_x_g<HAS_WEIGHT>(x, w, dy, column, columns, xs1, g1);
    add_to_moments<VEC, VEC>(v, xs1, g1, columns.width - column, moments);
  }
  return moments;
}

// Computes dx from x, w and dy, and (μ, r) of every row into statistics [rows, 2]. Elements of a row that do not fit
// the registers are loaded twice.
template <typename T, int VEC, int VECS_PER_THREAD, bool HAS_WEIGHT>
[[kernel]] void layer_norm_bwd_input(
    device const T* x [[buffer(0)]],
    device const T* w [[buffer(1)]],
    device const T* dy [[buffer(2)]],
    constant uint& rows [[buffer(3)]],
    constant uint& width [[buffer(4)]],
    constant float& eps [[buffer(5)]],
    device T* dx [[buffer(6)]],
    device float* statistics [[buffer(7)]],
    uint group [[threadgroup_position_in_grid]],
    uint groups [[threadgroups_per_grid]],
    uint thread_index [[thread_position_in_threadgroup]],
    uint threads [[threads_per_threadgroup]],
    uint lane [[thread_index_in_simdgroup]],
    uint simdgroup [[simdgroup_index_in_threadgroup]],
    uint simdgroups [[simdgroups_per_threadgroup]]) {
  threadgroup float2 scratch2[32];
  threadgroup float3 scratch3[32];
  const bool is_aligned = vec_aligned<VEC>(x, width) && vec_aligned<VEC>(dy, width) && vec_aligned<VEC>(dx, width) &&
                          (!HAS_WEIGHT || vec_aligned<VEC>(w, width));
  const Columns<VEC> columns = row_columns<VEC>(thread_index, threads, width, is_aligned);
  float ws[VECS_PER_THREAD][VEC];
  if (HAS_WEIGHT) {
    load_vecs<VECS_PER_THREAD>(w, columns, ws);
  }

  const Counts<VEC> counts = count_elements<VEC, VEC>(columns.first, columns.stride, width);
  const GroupRows own_rows = group_rows(group, groups, rows, threads);
  for (uint row = own_rows.first; row < own_rows.end; row += own_rows.step) {
    const size_t start = size_t(row) * width;
    float xs[VECS_PER_THREAD][VEC];
    float gs[VECS_PER_THREAD][VEC];
    Moments<VEC> moments = row_moments<HAS_WEIGHT, VECS_PER_THREAD>(x + start, w, dy + start, columns, ws, xs, gs);
    const RowStatistics found =
        row_statistics<VEC>(moments, counts, eps, scratch2, scratch3, lane, simdgroup, simdgroups);
    if (thread_index == 0) {
      store_statistics(float2(found.mean, found.r), statistics, row);
    }

    for (int v = 0; v < VECS_PER_THREAD && columns.contain(v); v++) {
      float dxs[VEC];
      center<VEC>(xs[v], found.mean);
      input_gradient<VEC>(xs[v], gs[v], found, dxs);
      columns.store(dx + start, columns.at(v), dxs);
    }
    for (size_t column = columns.at(VECS_PER_THREAD); column < width; column += columns.stride) {
      float xs1[VEC], g1[VEC], dx1[VEC];
      load_x_g<HAS_WEIGHT>(x + start, w, dy + start, column, columns, xs1, g1);
      center<VEC>(xs1, found.mean);
      input_gradient<VEC>(xs1, g1, found, dx1);
      columns.store(dx + start, column, dx1);
    }
  }
}

// Computes each group's partial sums of dw and db into partial [matrices, groups, width], for a block of columns, from
// the statistics (μ, r) of layer_norm_bwd_input. The simdgroups of a group share the rows.
template <typename T, typename PARTIAL_T, int VEC, int VECS_PER_THREAD, bool HAS_WEIGHT, bool HAS_BIAS>
[[kernel]] void layer_norm_bwd_gamma_partial(
    device const T* x [[buffer(0)]],
    device const T* dy [[buffer(1)]],
    device const float* statistics [[buffer(2)]],
    constant uint& rows [[buffer(3)]],
    constant uint& width [[buffer(4)]],
    device PARTIAL_T* partial [[buffer(5)]],
    uint2 group [[threadgroup_position_in_grid]],
    uint2 groups [[threadgroups_per_grid]],
    uint2 threads [[threads_per_threadgroup]],
    uint lane [[thread_index_in_simdgroup]],
    uint simdgroup [[simdgroup_index_in_threadgroup]],
    uint simdgroups [[simdgroups_per_threadgroup]]) {
  threadgroup float scratch[2][8 * VEC * 32];
  const bool is_aligned = vec_aligned<VEC>(dy, width) && (!HAS_WEIGHT || vec_aligned<VEC>(x, width));
  const uint lanes = min(threads.x, 32u);
  const Columns<VEC> columns = column_block<VEC, VECS_PER_THREAD>(group.x, lane, lanes, width, is_aligned);
  float dws[VECS_PER_THREAD][VEC] = {};
  float dbs[VECS_PER_THREAD][VEC] = {};
  // A simdgroup processes rows begin, begin + step, …
  const size_t step = size_t(groups.y) * simdgroups;
  for (size_t begin = size_t(group.y) * simdgroups + simdgroup; begin < rows; begin += step * lanes) {
    // Each lane loads the statistics of one row for all lanes.
    const float2 own_statistics = load_statistics(statistics, begin + step * lane, rows);
    for (uint i = 0; i < lanes && begin + step * i < rows; i++) {
      const float2 row = simd_shuffle(own_statistics, i);
      const size_t start = (begin + step * i) * width;
      for (int v = 0; v < VECS_PER_THREAD && columns.contain(v); v++) {
        float xs[VEC], dys[VEC];
        if (HAS_WEIGHT) {
          columns.load(x + start, columns.at(v), xs);
          center<VEC>(xs, row.x);
        }
        columns.load(dy + start, columns.at(v), dys);
        add_parameter_gradients<VEC, HAS_WEIGHT, HAS_BIAS>(xs, dys, row.y, dws[v], dbs[v]);
      }
    }
  }
  // Consecutive sums use different scratch memory, so the barrier of one protects the memory of the other.
  for (int v = 0; v < VECS_PER_THREAD; v++) {
    if (HAS_WEIGHT) {
      sum_simdgroups<VEC>(dws[v], scratch[HAS_BIAS ? 0 : v % 2], lane, simdgroup, simdgroups);
    }
    if (HAS_BIAS) {
      sum_simdgroups<VEC>(dbs[v], scratch[HAS_WEIGHT ? 1 : v % 2], lane, simdgroup, simdgroups);
    }
  }
  if (simdgroup == 0) {
    const bool partial_aligned = vec_aligned<VEC>(partial, width);
    store_partial<VECS_PER_THREAD, HAS_WEIGHT, HAS_BIAS>(
        partial, group.y, groups.y, columns, partial_aligned, dws, dbs);
  }
}

// Adds up the partial sums of dw and db, as column_sum does.
template <typename T, int VEC, int ROWS_PER_STEP, int MAX_SIMDGROUPS>
[[kernel]] void layer_norm_bwd_gamma_reduce(
    device const float* partial [[buffer(0)]],
    constant uint& groups [[buffer(1)]],
    constant uint& width [[buffer(2)]],
    device T* sums [[buffer(3)]],
    uint2 group [[threadgroup_position_in_grid]],
    uint2 threads [[threads_per_threadgroup]],
    uint lane [[thread_index_in_simdgroup]],
    uint simdgroup [[simdgroup_index_in_threadgroup]],
    uint simdgroups [[simdgroups_per_threadgroup]]) {
  threadgroup float scratch[MAX_SIMDGROUPS * VEC * 32];
  sum_rows<T, VEC, ROWS_PER_STEP>(
      partial, groups, width, sums + size_t(group.y) * width, scratch, group, threads, lane, simdgroup, simdgroups);
}
