// Backward pass of the RMS norm in one pass over x and dy, or in two for wide rows.
//
// Forward, for each of N rows of width D:
//
//   r   = rsqrt(mean(x²) + eps)
//   y_j = x_j · r · w_j
//
// With dy the cotangent of y, g = dy·w and dr/dx_j = −r³·x_j/D:
//
//   s    = Σ_j g_j · x_j
//   dx_j = r · (g_j − x_j · c),  c = s·r²/D
//   dw_j = Σ_rows dy_j · x_j · r
//
// Reference: compare/oracle/rmsnorm.go.
//
// Storage is T, arithmetic float. The order of every sum depends only on the launch geometry, so results have the same
// bits in every run.
//
// Rows that fit the registers of a threadgroup:
//   rms_norm_backward             dx and each group's partial sum of dw
//   column_sum                    dw, from the partial sums
// Wider rows:
//   rms_norm_backward_statistics  r and c of every row
//   rms_norm_backward_columns     dx and each group's partial sum of dw, for a block of columns
//   column_sum
//
// Launch, with _statistics and _columns for the kernels with these suffixes:
//
//   parameter        meaning                                     constraint
//   VEC              elements per vector                         a power of two
//   VECS_PER_THREAD  vectors per thread                          a group covers the row, in _columns the block
//   VEC_UNALIGNED    elements per vector of unaligned rows       a power of two, divides VEC·VECS_PER_THREAD
//   PREFETCH         arrays of a row (x, dy) that are loaded     0 to 2, no effect beyond 32 elements per thread
//                    before the sums of the previous row
//   COPY_THREADS     threads of a group that prefetches rows to  0 for a prefetch to registers
//                    threadgroup memory
//   FULL_ROWS        the vectors of the threads fill a row       width = VEC·VECS_PER_THREAD·threads of a row
//   ALL_ALIGNED      no code for unaligned rows; on an NVIDIA    false on a GPU; VEC divides the width
//                    GPU, FULL_ROWS and aligned inputs are enough
//   ROWS_PER_GROUP   rows that a group processes at a time       1, or the simdgroups of a group
//   BYPASS_CACHES    how to store dx (RowWriter)                 false on a GPU
//   ROWS_PER_STEP    rows of _statistics per load of w           any
//   HAS_WEIGHT       use w and write partial_dw                  without it, neither is accessed
//   HAS_SUM          add dh, a cotangent of x itself, to dx      without it, dh is not accessed
//   threads          per group                                   32·n up to 1024, or below 32; in _columns 32·n or 1
//   groups along x   share the rows (group_rows)                 any; in _columns one per block of columns
//   groups along y   of _columns, share the rows                 any
//
// Indices are size_t. A uint could wrap around, so the compiler could not prove that neighboring elements are adjacent.
//
// Device traffic in elements of T: 3·N·D, or 5·N·D for wide rows; N·D more with dh. The partial sums of dw take
// 2·groups·D floats.

#include "rms_norm.h"

// Returns a thread's parts of Σ x² and Σ g·x of a row, in the first pass over it.
template <int VEC, typename STREAM, typename WEIGHT, typename HELD>
inline float2 row_sums(
    STREAM stream, size_t start, thread const WEIGHT& held_w, thread HELD& held_x, thread HELD& held_dy) {
  constexpr int ACCUMULATORS = VEC < 4 ? 4 : VEC;
  float squares[ACCUMULATORS] = {};
  float products[ACCUMULATORS] = {};
  for (int v = 0; stream.contains(v); v++) {
    float xs[VEC], dys[VEC], g[VEC];
    stream.load(start, v, held_w, held_x, held_dy, xs, dys, g);
    const int first = VEC < ACCUMULATORS ? v * VEC % ACCUMULATORS : 0;
    add_to_sums<VEC>(xs, g, squares + first, products + first);
  }
  return float2(Pairwise<ACCUMULATORS>::sum(squares), Pairwise<ACCUMULATORS>::sum(products));
}

// Stores dx of a row from (r, c), and adds the row's terms to dw, in the second pass over it.
template <
    bool HAS_WEIGHT,
    bool HAS_SUM,
    int VEC,
    typename STREAM,
    typename WEIGHT,
    typename HELD,
    typename T,
    typename WRITER>
inline void store_gradients(
    STREAM stream,
    size_t start,
    float2 rc,
    thread const WEIGHT& held_w,
    thread const HELD& held_x,
    thread const HELD& held_dy,
    thread const HELD& held_dh,
    device const T* dh,
    thread WRITER& dx,
    thread float (*dws)[VEC]) {
  for (int v = 0; stream.contains(v); v++) {
    float xs[VEC], dys[VEC], g[VEC], dxs[VEC];
    stream.load(start, v, held_w, held_x, held_dy, xs, dys, g);
    input_gradient<VEC>(xs, g, rc.x, rc.y, dxs);
    if (HAS_SUM) {
      float dhs[VEC];
      stream.load_once(held_dh, dh + start, v, dhs);
      add_values<VEC>(dhs, dxs);
    }
    dx.store(stream.column(v), stream.width, STREAM::IS_ALIGNED, dxs);
    if (HAS_WEIGHT) {
      add_weight_gradient<VEC>(xs, dys, rc.x, dws[v]);
    }
  }
}

// Implements rms_norm_backward for aligned or unaligned rows.
template <
    typename T,
    int VEC,
    int VECS_PER_THREAD,
    int PREFETCH,
    int COPY_THREADS,
    bool FULL_ROWS,
    int ROWS_PER_GROUP,
    bool HAS_WEIGHT,
    bool HAS_SUM,
    bool BYPASS_CACHES,
    bool ALIGNED>
inline void rms_norm_rows(
    device const T* x,
    device const T* w,
    device const T* dy,
    device const T* dh,
    uint rows,
    uint width,
    float eps,
    device T* dx,
    device float* partial_dw,
    threadgroup float2 (*scratch)[32],
    threadgroup float* group_sums,
    threadgroup uint* copies,
    RowThreads threads,
    uint group,
    uint simdgroup) {
  typedef HeldVecs<T, VEC, VECS_PER_THREAD> Held;
  const GroupRows own_rows = group_rows(threads.group, threads.groups, rows, threads.count);
  typedef RowStream<T, VEC, VECS_PER_THREAD, PREFETCH, COPY_THREADS, FULL_ROWS, HAS_WEIGHT, ALIGNED> Stream;
  const Stream stream = Stream{
      x, w, dy, size_t(threads.index) * VEC, size_t(threads.count) * VEC, width, size_t(own_rows.step) * width, copies};
  const float inverse_width = 1.0f / float(width);

  float dws[VECS_PER_THREAD][VEC];
  for (int v = 0; stream.contains(v); v++) {
    for (int k = 0; k < VEC; k++) {
      dws[v][k] = 0;
    }
  }
  typename Stream::HeldWeight held_w;
  Held held_x, held_dy;
  stream.begin(own_rows.first < own_rows.end, size_t(own_rows.first) * width, held_w, held_x, held_dy);
  uint buffer = 0;
  for (uint row = own_rows.first; row < own_rows.end; row += own_rows.step, buffer ^= 1) {
    const size_t start = size_t(row) * width;
    const bool is_last = own_rows.end - row <= own_rows.step;
    Held next_x, next_dy, held_dh;
    stream.begin_row(start, is_last, buffer, held_x, held_dy, next_x, next_dy);
    if (HAS_SUM) {
      stream.hold_once(dh + start, held_dh);
    }

    const float2 own = row_sums<VEC>(stream, start, held_w, held_x, held_dy);
    const float2 sums = threadgroup_sum(own, scratch[buffer], threads.lane, threads.simdgroup, threads.simdgroups);
    const float2 rc = row_statistics(sums, inverse_width, eps);

    RowWriter<VEC, T, BYPASS_CACHES> row_of_dx;
    row_of_dx.begin_row(dx + start);
    store_gradients<HAS_WEIGHT, HAS_SUM>(stream, start, rc, held_w, held_x, held_dy, held_dh, dh, row_of_dx, dws);
    row_of_dx.end_row();
    stream.end_row(is_last, held_x, held_dy, next_x, next_dy);
  }
  if (HAS_WEIGHT) {
    stream.template store_group_sums<ROWS_PER_GROUP>(
        partial_dw + size_t(group) * width, dws, group_sums, threads.lane, simdgroup);
  }
}

// Computes dx, and each group's partial sum of dw in partial_dw [groups, width]. x is the input of the norm.
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
    bool HAS_SUM,
    bool BYPASS_CACHES>
[[kernel]] void rms_norm_backward(
    device const T* x [[buffer(0)]],
    device const T* w [[buffer(1)]],
    device const T* dy [[buffer(2)]],
    device const T* dh [[buffer(3)]],
    constant uint& rows [[buffer(4)]],
    constant uint& width [[buffer(5)]],
    constant float& eps [[buffer(6)]],
    device T* dx [[buffer(7)]],
    device float* partial_dw [[buffer(8)]],
    uint group [[threadgroup_position_in_grid]],
    uint groups [[threadgroups_per_grid]],
    uint thread_index [[thread_position_in_threadgroup]],
    uint threads [[threads_per_threadgroup]],
    uint lane [[thread_index_in_simdgroup]],
    uint simdgroup [[simdgroup_index_in_threadgroup]],
    uint simdgroups [[simdgroups_per_threadgroup]]) {
  threadgroup float2 scratch[2][32];
  threadgroup float group_sums[GroupSums<ROWS_PER_GROUP, VEC, VECS_PER_THREAD, COPY_THREADS>::SIZE];
  typedef RowCopies<T, VEC, VECS_PER_THREAD, COPY_THREADS> Copies;
  threadgroup typename Copies::Words copies[Copies::SIZE];
  // Without copies, SIZE is 1 and no thread uses the memory.
  threadgroup uint* own_copies = reinterpret_cast<threadgroup uint*>(copies + thread_index % Copies::SIZE);
  const RowThreads row = row_threads<ROWS_PER_GROUP>(group, groups, thread_index, threads, lane, simdgroup, simdgroups);
  if (ALL_ALIGNED || (FULL_ROWS && ALIGNED_INPUTS) ||
      (vec_aligned<VEC>(x, width) && vec_aligned<VEC>(dy, width) && vec_aligned<VEC>(dx, width) &&
       (!HAS_WEIGHT || (vec_aligned<VEC>(w, width) && vec_aligned<VEC>(partial_dw, width))) &&
       (!HAS_SUM || vec_aligned<VEC>(dh, width)))) {
    rms_norm_rows<
        T, VEC, VECS_PER_THREAD, PREFETCH, COPY_THREADS, FULL_ROWS, ROWS_PER_GROUP, HAS_WEIGHT, HAS_SUM, BYPASS_CACHES,
        true>(x, w, dy, dh, rows, width, eps, dx, partial_dw, scratch, group_sums, own_copies, row, group, simdgroup);
  } else {
    constexpr int VECS = VECS_PER_THREAD * VEC / VEC_UNALIGNED;
    rms_norm_rows<T, VEC_UNALIGNED, VECS, 0, 0, FULL_ROWS, ROWS_PER_GROUP, HAS_WEIGHT, HAS_SUM, false, false>(
        x, w, dy, dh, rows, width, eps, dx, partial_dw, scratch, group_sums, own_copies, row, group, simdgroup);
  }
}

// Computes (r, c) of every row into statistics [rows, 2]. A thread accumulates one sum per row. With ROWS_PER_STEP 1 it
// accumulates VEC sums, for the vector registers of a CPU.
template <typename T, int VEC, int ROWS_PER_STEP, bool HAS_WEIGHT>
[[kernel]] void rms_norm_backward_statistics(
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
  threadgroup float2 scratch[2][32];
  const Columns<VEC> columns = row_columns<VEC>(
      thread_index, threads, width,
      vec_aligned<VEC>(x, width) && vec_aligned<VEC>(dy, width) && (!HAS_WEIGHT || vec_aligned<VEC>(w, width)));
  const float inverse_width = 1.0f / float(width);
  uint buffer = 0;
  for (size_t begin = size_t(group) * ROWS_PER_STEP; begin < rows; begin += size_t(groups) * ROWS_PER_STEP) {
    float squares[ROWS_PER_STEP][ACCUMULATORS] = {};
    float products[ROWS_PER_STEP][ACCUMULATORS] = {};
    for (size_t column = columns.first; column < width; column += columns.stride) {
      float ws[VEC];
      load_weight<HAS_WEIGHT>(w, column, columns, ws);
      for (int b = 0; b < ROWS_PER_STEP && begin + b < rows; b++) {
        const size_t start = (begin + b) * width;
        float xs[VEC], dys[VEC], g[VEC];
        load_x_dy_g<HAS_WEIGHT>(x + start, dy + start, column, columns, ws, xs, dys, g);
        add_to_sums<VEC, ACCUMULATORS>(xs, g, squares[b], products[b]);
      }
    }
    for (int b = 0; b < ROWS_PER_STEP && begin + b < rows; b++, buffer ^= 1) {
      const float2 own = float2(Pairwise<ACCUMULATORS>::sum(squares[b]), Pairwise<ACCUMULATORS>::sum(products[b]));
      const float2 sums = threadgroup_sum(own, scratch[buffer], lane, simdgroup, simdgroups);
      if (thread_index == 0) {
        store_statistics(row_statistics(sums, inverse_width, eps), statistics, begin + b);
      }
    }
  }
}

// Computes the outputs of rms_norm_backward for one block of columns, from the statistics of the rows. The groups along
// y share the rows.
template <typename T, int VEC, int VECS_PER_THREAD, bool HAS_WEIGHT, bool HAS_SUM>
[[kernel]] void rms_norm_backward_columns(
    device const T* x [[buffer(0)]],
    device const T* w [[buffer(1)]],
    device const T* dy [[buffer(2)]],
    device const T* dh [[buffer(3)]],
    device const float* statistics [[buffer(4)]],
    constant uint& rows [[buffer(5)]],
    constant uint& width [[buffer(6)]],
    device T* dx [[buffer(7)]],
    device float* partial_dw [[buffer(8)]],
    uint2 group [[threadgroup_position_in_grid]],
    uint2 groups [[threadgroups_per_grid]],
    uint2 thread_position [[thread_position_in_threadgroup]],
    uint2 threads [[threads_per_threadgroup]],
    uint lane [[thread_index_in_simdgroup]]) {
  const bool is_aligned = vec_aligned<VEC>(x, width) && vec_aligned<VEC>(dy, width) && vec_aligned<VEC>(dx, width) &&
                          (!HAS_WEIGHT || vec_aligned<VEC>(w, width)) && (!HAS_SUM || vec_aligned<VEC>(dh, width));
  const uint lanes = min(threads.x, 32u);
  const Columns<VEC> columns =
      column_block<VEC, VECS_PER_THREAD>(group.x, thread_position.x, threads.x, width, is_aligned);

  float ws[VECS_PER_THREAD][VEC];
  float dws[VECS_PER_THREAD][VEC];
  for (int v = 0; v < VECS_PER_THREAD && columns.contain(v); v++) {
    if (HAS_WEIGHT) {
      columns.load(w, columns.at(v), ws[v]);
      for (int k = 0; k < VEC; k++) {
        dws[v][k] = 0;
      }
    }
  }
  for (size_t begin = group.y; begin < rows; begin += size_t(groups.y) * lanes) {
    // Each lane loads the statistics of one row for all lanes.
    const float2 own_rc = load_statistics(statistics, begin + size_t(groups.y) * lane, rows);
    for (uint i = 0; i < lanes && begin + size_t(groups.y) * i < rows; i++) {
      const float2 rc = simd_shuffle(own_rc, i);
      const size_t start = (begin + size_t(groups.y) * i) * width;
      for (int v = 0; v < VECS_PER_THREAD && columns.contain(v); v++) {
        float xs[VEC], dys[VEC], g[VEC], dxs[VEC];
        load_x_dy_g<HAS_WEIGHT>(x + start, dy + start, columns.at(v), columns, ws[v], xs, dys, g);
        input_gradient<VEC>(xs, g, rc.x, rc.y, dxs);
        if (HAS_SUM) {
          float dhs[VEC];
          columns.load(dh + start, columns.at(v), dhs);
          add_values<VEC>(dhs, dxs);
        }
        columns.store(dx + start, columns.at(v), dxs);
        if (HAS_WEIGHT) {
          add_weight_gradient<VEC>(xs, dys, rc.x, dws[v]);
        }
      }
    }
  }
  if (HAS_WEIGHT) {
    const bool partial_aligned = vec_aligned<VEC>(partial_dw, width);
    store_vecs<VECS_PER_THREAD>(partial_dw + size_t(group.y) * width, columns, partial_aligned, dws);
  }
}
