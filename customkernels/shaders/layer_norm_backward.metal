// Backward pass of the layer norm in one pass over x and dy, or in two for wide rows.
//
// Forward, for each of N rows of width D:
//
//   μ   = mean(x)
//   r   = rsqrt(mean((x − μ)²) + eps)
//   y_j = (x_j − μ) · r · w_j + b_j
//
// With dy the cotangent of y, g = dy·w, dμ/dx_j = 1/D and dr/dx_j = −r³·(x_j − μ)/D:
//
//   c    = r² · mean(g·(x − μ))
//   dx_j = r · (g_j − mean(g) − (x_j − μ)·c)
//   dw_j = Σ_rows dy_j · (x_j − μ)·r
//   db_j = Σ_rows dy_j
//
// Reference: compare/oracle/layernorm.go.
//
// If the mean is far from zero, sums of squares and products of x itself would lose digits. They are therefore taken of
// x − shift. The shift starts as the first element. Whenever the number of vectors in a sum has doubled, the shift
// moves to the mean of the elements so far, which keeps the sum small. At the end it moves to the row's mean. If each
// sum has only one element, it is exact until then, so the result equals the result of the two-pass formula.
//
// Storage is T, arithmetic float. The order of every sum depends only on the launch geometry, so results have the same
// bits in every run.
//
// Rows that fit the registers of a threadgroup:
//   layer_norm_backward             dx and each group's partial sums of dw and db
//   column_sum                      dw and db, from the partial sums
// Wider rows:
//   layer_norm_backward_statistics  μ, r, mean(g) and c of every row
//   layer_norm_backward_columns     dx and each group's partial sums of dw and db, for a block of columns
//   column_sum
//
// Launch, with _statistics and _columns for the kernels with these suffixes:
//
//   parameter        meaning                                     constraint
//   VEC              elements per vector                         a power of two
//   VECS_PER_THREAD  vectors per thread                          a group covers the row, in _columns the block
//   VEC_UNALIGNED    elements per vector of unaligned rows,      VEC for the vector registers of a CPU,
//                    and accumulators per thread of all rows     or 1 for the fewest registers
//   PREFETCH         arrays of a row (x, dy) that are loaded     0 to 2, no effect beyond 32 elements per thread
//                    before the sums of the previous row
//   COPY_THREADS     threads of a group that prefetches rows to  0 for a prefetch to registers
//                    threadgroup memory
//   FULL_ROWS        the vectors of the threads fill a row       width = VEC·VECS_PER_THREAD·threads of a row
//   ALL_ALIGNED      no code for unaligned rows; on an NVIDIA    false on a GPU; VEC divides the width
//                    GPU, FULL_ROWS and aligned inputs are enough
//   ROWS_PER_GROUP   rows that a group processes at a time       1, or the simdgroups of a group
//   ROWS_PER_STEP    rows of _statistics per load of w           any
//   BYPASS_CACHES    how to store dx (RowWriter)                 false on a GPU
//   HAS_WEIGHT       use w and write partial sums of dw          without it, w is not accessed
//   HAS_BIAS         write partial sums of db                    without it and HAS_WEIGHT, partial is not accessed
//   threads          per group                                   32·n up to 1024, or below 32; in _columns 32·n or 1
//   groups along x   share the rows (group_rows)                 any; in _columns one per block of columns
//   groups along y   of _columns, share the rows                 any
//
// Device traffic in elements of T: 3·N·D, or 5·N·D for wide rows. The partial sums of dw and of db take 2·groups·D
// floats each.

#include "layer_norm.h"

// Adds vector v of a row, in the first pass over it.
template <int VEC, bool ALIGNED, int ACCUMULATORS, typename STREAM, typename WEIGHT, typename HELD>
inline void load_moments(
    STREAM stream,
    size_t start,
    int v,
    thread const WEIGHT& held_w,
    thread HELD& held_x,
    thread HELD& held_dy,
    thread Moments<ACCUMULATORS>& moments) {
  float xs[VEC], dys[VEC], g[VEC];
  stream.load(start, v, held_w, held_x, held_dy, xs, dys, g);
  add_to_moments<VEC, ACCUMULATORS>(v, xs, g, ALIGNED ? VEC : stream.width - stream.column(v), moments);
}

// Returns the moments of a thread's elements of a row, and prefetches the row of dx. The first vector, which sets the
// shifts, is apart from the loop, so that a compiler keeps the moments in registers.
template <
    int VEC,
    int ACCUMULATORS,
    bool BYPASS_CACHES,
    bool ALIGNED,
    typename T,
    typename STREAM,
    typename WEIGHT,
    typename HELD>
inline Moments<ACCUMULATORS> row_moments(
    STREAM stream, size_t start, device T* dx, thread const WEIGHT& held_w, thread HELD& held_x, thread HELD& held_dy) {
  Moments<ACCUMULATORS> moments = {};
  if (stream.contains(0)) {
    prefetch_row_store<BYPASS_CACHES, VEC>(dx + stream.column(0));
    load_moments<VEC, ALIGNED>(stream, start, 0, held_w, held_x, held_dy, moments);
  }
  for (int v = 1; stream.contains(v); v++) {
    prefetch_row_store<BYPASS_CACHES, VEC>(dx + stream.column(v));
    load_moments<VEC, ALIGNED>(stream, start, v, held_w, held_x, held_dy, moments);
  }
  return moments;
}

// Implements layer_norm_backward for aligned or unaligned rows.
template <
    typename T,
    int VEC,
    int VECS_PER_THREAD,
    int ACCUMULATORS,
    int PREFETCH,
    int COPY_THREADS,
    bool FULL_ROWS,
    int ROWS_PER_GROUP,
    bool HAS_WEIGHT,
    bool HAS_BIAS,
    bool BYPASS_CACHES,
    bool ALIGNED>
inline void layer_norm_rows(
    device const T* x,
    device const T* w,
    device const T* dy,
    uint rows,
    uint width,
    float eps,
    device T* dx,
    device float* partial,
    threadgroup float2* scratch2,
    threadgroup float3* scratch3,
    threadgroup float* group_sums,
    threadgroup uint* copies,
    RowThreads threads,
    uint group,
    uint groups,
    uint simdgroup) {
  typedef HeldVecs<T, VEC, VECS_PER_THREAD> Held;
  const GroupRows own_rows = group_rows(threads.group, threads.groups, rows, threads.count);
  typedef RowStream<T, VEC, VECS_PER_THREAD, PREFETCH, COPY_THREADS, FULL_ROWS, HAS_WEIGHT, ALIGNED> Stream;
  const Columns<VEC> columns = row_columns<VEC>(threads.index, threads.count, width, ALIGNED);
  const Stream stream = Stream{x, w, dy, columns.first, columns.stride, width, size_t(own_rows.step) * width, copies};

  float dws[VECS_PER_THREAD][VEC];
  float dbs[VECS_PER_THREAD][VEC];
  for (int v = 0; stream.contains(v); v++) {
    for (int k = 0; k < VEC; k++) {
      dws[v][k] = 0;
      dbs[v][k] = 0;
    }
  }
  typename Stream::HeldWeight held_w;
  Held held_x, held_dy;
  stream.begin(own_rows.first < own_rows.end, size_t(own_rows.first) * width, held_w, held_x, held_dy);
  const Counts<ACCUMULATORS> counts = count_elements<VEC, ACCUMULATORS>(columns.first, columns.stride, width);
  uint buffer = 0;
  for (uint row = own_rows.first; row < own_rows.end; row += own_rows.step, buffer ^= 1) {
    const size_t start = size_t(row) * width;
    const bool is_last = own_rows.end - row <= own_rows.step;
    Held next_x, next_dy;
    stream.begin_row(start, is_last, buffer, held_x, held_dy, next_x, next_dy);

    Moments<ACCUMULATORS> moments =
        row_moments<VEC, ACCUMULATORS, BYPASS_CACHES, ALIGNED>(stream, start, dx + start, held_w, held_x, held_dy);
    const RowStatistics statistics = row_statistics<ACCUMULATORS>(
        moments, counts, eps, scratch2, scratch3, threads.lane, threads.simdgroup, threads.simdgroups);

    hide_origin(held_x);
    hide_origin(held_dy);
    RowWriter<VEC, T, BYPASS_CACHES> row_of_dx;
    row_of_dx.begin_row(dx + start);
    for (int v = 0; stream.contains(v); v++) {
      float xs[VEC], dys[VEC], g[VEC], dxs[VEC];
      stream.template prefetch_next<BYPASS_CACHES>(start, v);
      stream.load(start, v, held_w, held_x, held_dy, xs, dys, g);
      center<VEC>(xs, statistics.mean);
      input_gradient<VEC>(xs, g, statistics, dxs);
      row_of_dx.store(stream.column(v), width, ALIGNED, dxs);
      add_parameter_gradients<VEC, HAS_WEIGHT, HAS_BIAS>(xs, dys, statistics.r, dws[v], dbs[v]);
    }
    row_of_dx.end_row();
    stream.end_row(is_last, held_x, held_dy, next_x, next_dy);
  }
  device float* partial_dw = partial + size_t(group) * width;
  device float* partial_db = partial_dw + (HAS_WEIGHT ? size_t(groups) * width : 0);
  if (HAS_WEIGHT) {
    stream.template store_group_sums<ROWS_PER_GROUP>(partial_dw, dws, group_sums, threads.lane, simdgroup);
  }
  if (HAS_BIAS) {
    stream.template store_group_sums<ROWS_PER_GROUP>(partial_db, dbs, group_sums, threads.lane, simdgroup);
  }
}

// Computes dx, and each group's partial sums of dw and db in partial [matrices, groups, width] (store_partial).
template <
    typename T,
    int VEC,
    int VECS_PER_THREAD,
    int VEC_UNALIGNED,
    int PREFETCH,
    int COPY_THREADS,
    bool FULL_ROWS,
    bool ALL_ALIGNED,
    int ROWS_PER_GROUP,
    bool HAS_WEIGHT,
    bool HAS_BIAS,
    bool BYPASS_CACHES>
[[kernel]] void layer_norm_backward(
    device const T* x [[buffer(0)]],
    device const T* w [[buffer(1)]],
    device const T* dy [[buffer(2)]],
    constant uint& rows [[buffer(3)]],
    constant uint& width [[buffer(4)]],
    constant float& eps [[buffer(5)]],
    device T* dx [[buffer(6)]],
    device float* partial [[buffer(7)]],
    uint group [[threadgroup_position_in_grid]],
    uint groups [[threadgroups_per_grid]],
    uint thread_index [[thread_position_in_threadgroup]],
    uint threads [[threads_per_threadgroup]],
    uint lane [[thread_index_in_simdgroup]],
    uint simdgroup [[simdgroup_index_in_threadgroup]],
    uint simdgroups [[simdgroups_per_threadgroup]]) {
  threadgroup float2 scratch2[32];
  threadgroup float3 scratch3[32];
  threadgroup float group_sums[GroupSums<ROWS_PER_GROUP, VEC, VECS_PER_THREAD, COPY_THREADS>::SIZE];
  typedef RowCopies<T, VEC, VECS_PER_THREAD, COPY_THREADS> Copies;
  threadgroup typename Copies::Words copies[Copies::SIZE];
  // Without copies, SIZE is 1 and no thread uses the memory.
  threadgroup uint* own_copies = reinterpret_cast<threadgroup uint*>(copies + thread_index % Copies::SIZE);
  const RowThreads row = row_threads<ROWS_PER_GROUP>(group, groups, thread_index, threads, lane, simdgroup, simdgroups);
  if (ALL_ALIGNED || (FULL_ROWS && ALIGNED_INPUTS) ||
      (vec_aligned<VEC>(x, width) && vec_aligned<VEC>(dy, width) && vec_aligned<VEC>(dx, width) &&
       (!HAS_WEIGHT || vec_aligned<VEC>(w, width)) &&
       (!(HAS_WEIGHT || HAS_BIAS) || vec_aligned<VEC>(partial, width)))) {
    layer_norm_rows<
        T, VEC, VECS_PER_THREAD, VEC_UNALIGNED, PREFETCH, COPY_THREADS, FULL_ROWS, ROWS_PER_GROUP, HAS_WEIGHT, HAS_BIAS,
        BYPASS_CACHES, true>(
        x, w, dy, rows, width, eps, dx, partial, scratch2, scratch3, group_sums, own_copies, row, group, groups,
        simdgroup);
  } else {
    constexpr int VECS = VECS_PER_THREAD * VEC / VEC_UNALIGNED;
    layer_norm_rows<
        T, VEC_UNALIGNED, VECS, VEC_UNALIGNED, 0, 0, FULL_ROWS, ROWS_PER_GROUP, HAS_WEIGHT, HAS_BIAS, false, false>(
        x, w, dy, rows, width, eps, dx, partial, scratch2, scratch3, group_sums, own_copies, row, group, groups,
        simdgroup);
  }
}

// Computes (μ, r, mean(g), c) of every row into statistics [rows, 4]. A thread has one accumulator per row, which
// leaves registers for 16 rows. With ROWS_PER_STEP 1 it has VEC accumulators, for the vector registers of a CPU.
template <typename T, int VEC, int ROWS_PER_STEP, bool HAS_WEIGHT>
[[kernel]] void layer_norm_backward_statistics(
    device const T* x [[buffer(0)]],
    device const T* w [[buffer(1)]],
    device const T* dy [[buffer(2)]],
    constant uint& rows [[buffer(3)]],
    constant uint& width [[buffer(4)]],
    constant float& eps [[buffer(5)]],
    device float* statistics [[buffer(6)]],
    uint group [[threadgroup_position_in_grid]],
    uint groups [[threadgroups_per_grid]],
    uint thread_index [[thread_position_in_threadgroup]],
    uint threads [[threads_per_threadgroup]],
    uint lane [[thread_index_in_simdgroup]],
    uint simdgroup [[simdgroup_index_in_threadgroup]],
    uint simdgroups [[simdgroups_per_threadgroup]]) {
  constexpr int ACCUMULATORS = ROWS_PER_STEP == 1 ? VEC : 1;
  threadgroup float2 scratch2[32];
  threadgroup float3 scratch3[32];
  const Columns<VEC> columns = row_columns<VEC>(
      thread_index, threads, width,
      vec_aligned<VEC>(x, width) && vec_aligned<VEC>(dy, width) && (!HAS_WEIGHT || vec_aligned<VEC>(w, width)));
  const Counts<ACCUMULATORS> counts = count_elements<VEC, ACCUMULATORS>(columns.first, columns.stride, width);
  for (size_t begin = size_t(group) * ROWS_PER_STEP; begin < rows; begin += size_t(groups) * ROWS_PER_STEP) {
    Moments<ACCUMULATORS> moments[ROWS_PER_STEP] = {};
    uint v = 0;
    for (size_t column = columns.first; column < width; column += columns.stride, v++) {
      float ws[VEC];
      load_weight<HAS_WEIGHT>(w, column, columns, ws);
      for (int b = 0; b < ROWS_PER_STEP && begin + b < rows; b++) {
        const size_t start = (begin + b) * width;
        float xs[VEC], dys[VEC], g[VEC];
        load_x_dy_g<HAS_WEIGHT>(x + start, dy + start, column, columns, ws, xs, dys, g);
        add_to_moments<VEC, ACCUMULATORS>(v, xs, g, width - column, moments[b]);
      }
    }
    for (int b = 0; b < ROWS_PER_STEP && begin + b < rows; b++) {
      const RowStatistics row =
          row_statistics<ACCUMULATORS>(moments[b], counts, eps, scratch2, scratch3, lane, simdgroup, simdgroups);
      if (thread_index == 0) {
        store_row_statistics(row, statistics, begin + b);
      }
    }
  }
}

// Computes the outputs of layer_norm_backward for one block of columns, from the statistics of the rows. The groups
// along y share the rows.
template <typename T, int VEC, int VECS_PER_THREAD, bool HAS_WEIGHT, bool HAS_BIAS>
[[kernel]] void layer_norm_backward_columns(
    device const T* x [[buffer(0)]],
    device const T* w [[buffer(1)]],
    device const T* dy [[buffer(2)]],
    device const float* statistics [[buffer(3)]],
    constant uint& rows [[buffer(4)]],
    constant uint& width [[buffer(5)]],
    device T* dx [[buffer(6)]],
    device float* partial [[buffer(7)]],
    uint2 group [[threadgroup_position_in_grid]],
    uint2 groups [[threadgroups_per_grid]],
    uint2 thread_position [[thread_position_in_threadgroup]],
    uint2 threads [[threads_per_threadgroup]],
    uint lane [[thread_index_in_simdgroup]]) {
  const bool is_aligned = vec_aligned<VEC>(x, width) && vec_aligned<VEC>(dy, width) && vec_aligned<VEC>(dx, width) &&
                          (!HAS_WEIGHT || vec_aligned<VEC>(w, width));
  const Columns<VEC> columns =
      column_block<VEC, VECS_PER_THREAD>(group.x, thread_position.x, threads.x, width, is_aligned);

  float ws[VECS_PER_THREAD][VEC];
  float dws[VECS_PER_THREAD][VEC];
  float dbs[VECS_PER_THREAD][VEC];
  for (int v = 0; v < VECS_PER_THREAD && columns.contain(v); v++) {
    load_weight<HAS_WEIGHT>(w, columns.at(v), columns, ws[v]);
    for (int k = 0; k < VEC; k++) {
      dws[v][k] = 0;
      dbs[v][k] = 0;
    }
  }
  const uint lanes = min(threads.x, 32u);
  for (size_t begin = group.y; begin < rows; begin += size_t(groups.y) * lanes) {
    // Each lane loads the statistics of one row for all lanes.
    const float4 own_statistics = load_row_statistics(statistics, begin + size_t(groups.y) * lane, rows);
    for (uint i = 0; i < lanes && begin + size_t(groups.y) * i < rows; i++) {
      const float4 shared = simd_shuffle(own_statistics, i);
      const RowStatistics row = {shared.x, shared.y, shared.z, shared.w};
      const size_t start = (begin + size_t(groups.y) * i) * width;
      for (int v = 0; v < VECS_PER_THREAD && columns.contain(v); v++) {
        float xs[VEC], dys[VEC], g[VEC], dxs[VEC];
        load_x_dy_g<HAS_WEIGHT>(x + start, dy + start, columns.at(v), columns, ws[v], xs, dys, g);
        center<VEC>(xs, row.mean);
        input_gradient<VEC>(xs, g, row, dxs);
        columns.store(dx + start, columns.at(v), dxs);
        add_parameter_gradients<VEC, HAS_WEIGHT, HAS_BIAS>(xs, dys, row.r, dws[v], dbs[v]);
      }
    }
  }
  const bool partial_aligned = vec_aligned<VEC>(partial, width);
  store_partial<VECS_PER_THREAD, HAS_WEIGHT, HAS_BIAS>(partial, group.y, groups.y, columns, partial_aligned, dws, dbs);
}
