// Backward pass of the layer norm: fused, and in three kernels.
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
// Squares and products are never summed about zero, where a mean far from it would take
// their digits. A sum is about the first element that it has of the row; whenever the
// number of packs in it has doubled, it moves to the mean of its elements, so that it
// stays within a small factor of the sum about that; and at the end to the row's mean.
// With one element this is the mean first and then the squares, without rounding between.
//
// Storage is T; every product and sum is in float. Sums run in an order that the
// launch alone decides, so results are the same bits every time.
//
// Fused, for rows that a threadgroup can hold in its registers:
//   layer_norm_backward             a group walks over rows, keeps each in registers
//                                   between its sums and its dx, and adds up dw and db in
//                                   registers
//   column_sum                      adds up the groups' dw and db
// and for wider ones:
//   layer_norm_backward_statistics  μ, r, mean(g) and c of every row
//   layer_norm_backward_columns     a group does the same for a block of columns
// Separate:
//   layer_norm_bwd_input            dx, and μ and r of every row
//   layer_norm_bwd_gamma_partial    the groups' dw and db, for blocks of columns; those of
//                                   all rows where they are few enough for one group
//   layer_norm_bwd_gamma_reduce     column_sum
//
// Launch (threads): groups along x of whole simdgroups, at most 32, or of a part of one. In
// the kernels that walk over rows a group takes rows group, group + groups, …, so any number
// of groups is right; VECS_PER_THREAD packs of VEC elements a thread make the row (layer_norm_backward) or the
// block (_columns, whose groups are whole simdgroups or one thread, and along y share the rows;
// and _gamma_partial, of whose groups, at most 8 simdgroups, each simdgroup has all columns
// of the block). layer_norm_backward takes rows that are not packed, which are slow, in packs
// of VEC_UNALIGNED elements, a divisor of VECS_PER_THREAD·VEC; it holds the others as HELD_T, T or float, and with
// PREFETCH loads a row before it has summed up the one in front, if registers hold both, at most 32 elements a thread.
// The input kernel is right for any VECS_PER_THREAD, the statistics for any ROWS_PER_STEP. layer_norm_bwd_gamma_reduce
// is launched as column_sum is.
//
// Device traffic, in elements of T: fused 3·N·D, wider rows 5·N·D, and 2·groups·D
// floats each for the groups' dw and db; separate 3·N·D + 2·N·D, where the row fits
// registers, and the same floats.

#include "rows.h"

// What a thread sums up of its elements of a row: element k of a pack in sum k mod ACCUMULATORS. As
// many sums as elements suit a processor's vectors, and are the elements themselves
// where a thread has one pack; one sum takes the fewest registers.
template <int ACCUMULATORS>
struct Moments {
  float shift[ACCUMULATORS];     // the sum's first x
  float sum[ACCUMULATORS];       // Σ x − shift
  float squares[ACCUMULATORS];   // Σ (x − shift)²
  float g[ACCUMULATORS];         // Σ g
  float products[ACCUMULATORS];  // Σ g·(x − shift)
};

// Moves the shift of sums l, which are of n elements.
template <int ACCUMULATORS>
inline void move_shift(int l, float n, float shift, thread Moments<ACCUMULATORS>& moments) {
  const float by = moments.shift[l] - shift;
  const float sum = fma(n, by, moments.sum[l]);
  // Squares that overflow stay infinite if the product is not rounded.
  moments.squares[l] = fma(by, moments.sum[l] + sum, moments.squares[l]);
  moments.products[l] += by * moments.g[l];
  moments.sum[l] = sum;
  moments.shift[l] = shift;
}

// Adds pack p of a thread, of which count elements are in the row. The zeros beyond it
// must not count; there is no pack after them.
template <int VEC, int ACCUMULATORS>
inline void add_to_moments(
    uint p, thread const float* x, thread const float* g, size_t count, thread Moments<ACCUMULATORS>& moments) {
  if (p == 0) {
    for (int l = 0; l < ACCUMULATORS; l++) {
      moments.shift[l] = x[l];
      moments.sum[l] = 0;
      moments.squares[l] = 0;
      moments.g[l] = g[l];
      moments.products[l] = 0;
    }
    if (ACCUMULATORS == VEC) {
      return;
    }
  } else if ((p & (p - 1)) == 0 && (p > 1 || ACCUMULATORS < VEC)) {
    const float n = float(p) * (VEC / ACCUMULATORS);
    for (int l = 0; l < ACCUMULATORS; l++) {
      move_shift<ACCUMULATORS>(l, n, moments.shift[l] + moments.sum[l] / n, moments);
    }
  }
  for (int k = p == 0 ? ACCUMULATORS : 0; k < VEC; k++) {
    const int l = k % ACCUMULATORS;
    const float d = size_t(k) < count ? x[k] - moments.shift[l] : 0.0f;
    moments.sum[l] += d;
    moments.squares[l] += d * d;
    moments.g[l] += g[k];
    moments.products[l] += g[k] * d;
  }
}

// dy becomes g, the cotangent of (x − μ)·r.
template <int VEC, bool HAS_WEIGHT>
inline void times_weight(thread const float* dy, thread const float* w, thread float* g) {
  for (int k = 0; k < VEC; k++) {
    g[k] = HAS_WEIGHT ? dy[k] * w[k] : dy[k];
  }
}

struct Row {
  float mean;
  float r;
  float mean_g;
  float c;
};

// How many elements there are: in each of a thread's sums, and in a row. Both are the same for
// all rows, and cost divisions.
template <int ACCUMULATORS>
struct Counts {
  float n[ACCUMULATORS];
  float reciprocal;  // of the row's
};

// For a thread whose packs begin at column first and every stride.
template <int VEC, int ACCUMULATORS>
inline Counts<ACCUMULATORS> counts_of(size_t first, size_t stride, uint width) {
  // The thread has whole packs, and tail elements of one more.
  const size_t left = first < width ? width - first : 0;
  const size_t rest = left % stride;
  const size_t whole = left / stride + (rest >= size_t(VEC) ? 1 : 0);
  const size_t tail = rest < size_t(VEC) ? rest : 0;
  Counts<ACCUMULATORS> counts;
  for (int l = 0; l < ACCUMULATORS; l++) {
    counts.n[l] = float(ACCUMULATORS == VEC ? whole + (size_t(l) < tail ? 1 : 0) : whole * VEC + tail);
  }
  counts.reciprocal = 1.0f / float(width);
  return counts;
}

// The row's statistics from the moments of all threads.
template <int ACCUMULATORS>
inline Row statistics_of(
    thread Moments<ACCUMULATORS>& moments,
    Counts<ACCUMULATORS> counts,
    float eps,
    threadgroup float2* scratch,
    threadgroup float3* scratch3,
    uint lane,
    uint simdgroup,
    uint simdgroups) {
  float2 sums = float2(0);  // Σ x, Σ g
  for (int l = 0; l < ACCUMULATORS; l++) {
    sums.x += fma(counts.n[l], moments.shift[l], moments.sum[l]);
    sums.y += moments.g[l];
  }
  sums = threadgroup_sum(sums, scratch, lane, simdgroup, simdgroups);
  const float mean = sums.x * counts.reciprocal;

  float3 central = float3(0);  // Σ x − mean, Σ (x − mean)², Σ g·(x − mean)
  for (int l = 0; l < ACCUMULATORS; l++) {
    move_shift<ACCUMULATORS>(l, counts.n[l], mean, moments);
    central.x += moments.sum[l];
    central.y += moments.squares[l];
    central.z += moments.products[l];
  }
  central = threadgroup_sum(central, scratch3, lane, simdgroup, simdgroups);

  // The mean was rounded with a sum as large as the row; what is left of it is not.
  const float error = central.x * counts.reciprocal;
  const float squares = fma(-central.x, error, central.y);
  const float square = max(squares, 0.0f) * counts.reciprocal + eps;
  Row row;
  row.mean = mean + error;
  row.r = rsqrt(square);
  row.mean_g = sums.y * counts.reciprocal;
  row.c = (central.z - sums.y * error) * counts.reciprocal / square;  // has no roundings of r
  return row;
}

// dx of a pack. The difference can cancel, so its product is not rounded.
template <int VEC>
inline void gradient(thread const float* x, thread const float* g, Row row, thread float* dx) {
  for (int k = 0; k < VEC; k++) {
    dx[k] = row.r * fma(row.mean - x[k], row.c, g[k] - row.mean_g);
  }
}

// Adds a pack's share of dw and db.
template <int VEC, bool HAS_WEIGHT, bool HAS_BIAS>
inline void add_to_parameters(
    thread const float* x, thread const float* dy, float mean, float r, thread float* dw, thread float* db) {
  for (int k = 0; k < VEC; k++) {
    if (HAS_WEIGHT) {
      dw[k] += dy[k] * ((x[k] - mean) * r);
    }
    if (HAS_BIAS) {
      db[k] += dy[k];
    }
  }
}

// Writes VECS_PER_THREAD packs of a group's dw and db. partial has a matrix with a row for each group
// of dw, if there is a weight, and one of db, if there is a bias.
template <int VEC, int VECS_PER_THREAD, bool HAS_WEIGHT, bool HAS_BIAS, typename PARTIAL_T>
inline void write_partial(
    device PARTIAL_T* partial,
    uint group,
    uint groups,
    size_t first,
    size_t stride,
    uint width,
    bool is_aligned,
    thread const float (*dws)[VEC],
    thread const float (*dbs)[VEC]) {
  device PARTIAL_T* dw = partial + size_t(group) * width;
  device PARTIAL_T* db = dw + (HAS_WEIGHT ? size_t(groups) * width : 0);
  for (int p = 0; p < VECS_PER_THREAD && first + p * stride < width; p++) {
    if (HAS_WEIGHT) {
      store_vec<VEC>(dw, first + p * stride, width, is_aligned, dws[p]);
    }
    if (HAS_BIAS) {
      store_vec<VEC>(db, first + p * stride, width, is_aligned, dbs[p]);
    }
  }
}

// What layer_norm_backward does, with packs that are whole if ALIGNED. Of rows that are not,
// a thread reads its elements again.
template <
    typename T,
    typename HELD_T,
    int VEC,
    int VECS_PER_THREAD,
    int ACCUMULATORS,
    bool PREFETCH,
    bool HAS_WEIGHT,
    bool HAS_BIAS,
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
    threadgroup float2* scratch,
    threadgroup float3* scratch3,
    uint group,
    uint groups,
    uint thread_index,
    uint threads,
    uint lane,
    uint simdgroup,
    uint simdgroups) {
  const size_t first = size_t(thread_index) * VEC;
  const size_t stride = size_t(threads) * VEC;
  const size_t step = size_t(groups) * width;
  // Registers take a row before any of it is needed; a stack takes a pack at a time.
  constexpr bool AT_ONCE = ALIGNED && VECS_PER_THREAD * VEC <= 32;

  float dws[VECS_PER_THREAD][VEC];
  float dbs[VECS_PER_THREAD][VEC];
  for (int p = 0; p < VECS_PER_THREAD && first + p * stride < width; p++) {
    for (int k = 0; k < VEC; k++) {
      dws[p][k] = 0;
      dbs[p][k] = 0;
    }
  }
  HeldVecs<HELD_T, VEC, VECS_PER_THREAD> held_w, held_x, held_dy;
  if (ALIGNED && HAS_WEIGHT) {
    load_row_held(w, width, first, stride, held_w);
  }
  if (AT_ONCE && PREFETCH && group < rows) {
    load_row_held(x + size_t(group) * width, width, first, stride, held_x);
    load_row_held(dy + size_t(group) * width, width, first, stride, held_dy);
  }
  const Counts<ACCUMULATORS> counts = counts_of<VEC, ACCUMULATORS>(first, stride, width);
  for (uint row = group; row < rows; row += groups) {
    const size_t start = size_t(row) * width;
    const bool is_last = rows - row <= groups;
    HeldVecs<HELD_T, VEC, VECS_PER_THREAD> next_x, next_dy;
    if (AT_ONCE && !PREFETCH) {
      load_row_held(x + start, width, first, stride, held_x);
      load_row_held(dy + start, width, first, stride, held_dy);
    } else if (AT_ONCE && !is_last) {
      load_row_held(x + start + step, width, first, stride, next_x);
      load_row_held(dy + start + step, width, first, stride, next_dy);
    }

    Moments<ACCUMULATORS> moments = {};
    for (int p = 0; p < VECS_PER_THREAD && first + p * stride < width; p++) {
      const size_t column = first + p * stride;
      float xs[VEC], dys[VEC], ws[VEC], g[VEC];
      if (ALIGNED && !AT_ONCE) {
        load_vec_held(x + start, p, column, width, held_x);
        load_vec_held(dy + start, p, column, width, held_dy);
      }
      held_values<ALIGNED>(held_x, x + start, p, column, width, xs);
      held_values<ALIGNED>(held_dy, dy + start, p, column, width, dys);
      if (HAS_WEIGHT) {
        held_values<ALIGNED>(held_w, w, p, column, width, ws);
      }
      times_weight<VEC, HAS_WEIGHT>(dys, ws, g);
      add_to_moments<VEC, ACCUMULATORS>(p, xs, g, ALIGNED ? VEC : width - column, moments);
    }
    const Row found = statistics_of<ACCUMULATORS>(moments, counts, eps, scratch, scratch3, lane, simdgroup, simdgroups);

    for (int p = 0; p < VECS_PER_THREAD && first + p * stride < width; p++) {
      const size_t column = first + p * stride;
      float xs[VEC], dys[VEC], ws[VEC], g[VEC], dxs[VEC];
      held_values<ALIGNED>(held_x, x + start, p, column, width, xs);
      held_values<ALIGNED>(held_dy, dy + start, p, column, width, dys);
      if (HAS_WEIGHT) {
        held_values<ALIGNED>(held_w, w, p, column, width, ws);
      }
      times_weight<VEC, HAS_WEIGHT>(dys, ws, g);
      gradient<VEC>(xs, g, found, dxs);
      store_vec<VEC>(dx + start, column, width, ALIGNED, dxs);
      add_to_parameters<VEC, HAS_WEIGHT, HAS_BIAS>(xs, dys, found.mean, found.r, dws[p], dbs[p]);
    }
    if (AT_ONCE && PREFETCH && !is_last) {
      held_x = next_x;
      held_dy = next_dy;
    }
  }
  write_partial<VEC, VECS_PER_THREAD, HAS_WEIGHT, HAS_BIAS>(
      partial, group, groups, first, stride, width, ALIGNED, dws, dbs);
}

// dx, and the share of dw and db that the group's rows have. Without HAS_WEIGHT, w is not
// read; without either parameter, partial is not written.
template <
    typename T,
    typename HELD_T,
    int VEC,
    int VECS_PER_THREAD,
    int VEC_UNALIGNED,
    int ACCUMULATORS,
    bool PREFETCH,
    bool HAS_WEIGHT,
    bool HAS_BIAS>
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
  threadgroup float2 scratch[32];
  threadgroup float3 scratch3[32];
  if (vec_aligned<VEC>(x, width) && vec_aligned<VEC>(dy, width) && vec_aligned<VEC>(dx, width) &&
      vec_aligned<VEC>(partial, width) && (!HAS_WEIGHT || vec_aligned<VEC>(w, width))) {
    layer_norm_rows<T, HELD_T, VEC, VECS_PER_THREAD, ACCUMULATORS, PREFETCH, HAS_WEIGHT, HAS_BIAS, true>(
        x, w, dy, rows, width, eps, dx, partial, scratch, scratch3, group, groups, thread_index, threads, lane,
        simdgroup, simdgroups);
  } else {
    constexpr int FEWER = VEC_UNALIGNED < ACCUMULATORS ? VEC_UNALIGNED : ACCUMULATORS;
    layer_norm_rows<
        T, HELD_T, VEC_UNALIGNED, VECS_PER_THREAD * VEC / VEC_UNALIGNED, FEWER, false, HAS_WEIGHT, HAS_BIAS, false>(
        x, w, dy, rows, width, eps, dx, partial, scratch, scratch3, group, groups, thread_index, threads, lane,
        simdgroup, simdgroups);
  }
}

// μ, r, mean(g) and c of every row, ROWS_PER_STEP rows at a time, so that w is read once for them:
// then with one sum for each, which leaves registers for 16 rows.
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
  threadgroup float2 scratch[32];
  threadgroup float3 scratch3[32];
  const bool is_aligned =
      vec_aligned<VEC>(x, width) && vec_aligned<VEC>(dy, width) && (!HAS_WEIGHT || vec_aligned<VEC>(w, width));
  const size_t first = size_t(thread_index) * VEC;
  const size_t stride = size_t(threads) * VEC;
  constexpr int ACCUMULATORS = ROWS_PER_STEP == 1 ? VEC : 1;
  const Counts<ACCUMULATORS> counts = counts_of<VEC, ACCUMULATORS>(first, stride, width);
  for (size_t begin = size_t(group) * ROWS_PER_STEP; begin < rows; begin += size_t(groups) * ROWS_PER_STEP) {
    Moments<ACCUMULATORS> moments[ROWS_PER_STEP] = {};
    uint p = 0;
    for (size_t column = first; column < width; column += stride, p++) {
      float ws[VEC];
      if (HAS_WEIGHT) {
        load_vec<VEC>(w, column, width, is_aligned, ws);
      }
      for (int b = 0; b < ROWS_PER_STEP && begin + b < rows; b++) {
        const size_t start = (begin + b) * width;
        float xs[VEC], dys[VEC], g[VEC];
        load_vec<VEC>(x + start, column, width, is_aligned, xs);
        load_vec<VEC>(dy + start, column, width, is_aligned, dys);
        times_weight<VEC, HAS_WEIGHT>(dys, ws, g);
        add_to_moments<VEC, ACCUMULATORS>(p, xs, g, width - column, moments[b]);
      }
    }
    for (int b = 0; b < ROWS_PER_STEP && begin + b < rows; b++) {
      const Row found =
          statistics_of<ACCUMULATORS>(moments[b], counts, eps, scratch, scratch3, lane, simdgroup, simdgroups);
      if (thread_index == 0) {
        device float* out = statistics + 4 * (begin + b);
        out[0] = found.mean;
        out[1] = found.r;
        out[2] = found.mean_g;
        out[3] = found.c;
      }
    }
  }
}

// What layer_norm_backward does, for the block of columns that VECS_PER_THREAD packs of every thread
// make, from the statistics of the rows.
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
  const size_t stride = size_t(threads.x) * VEC;
  const size_t first = group.x * VECS_PER_THREAD * stride + size_t(thread_position.x) * VEC;

  float ws[VECS_PER_THREAD][VEC];
  float dws[VECS_PER_THREAD][VEC];
  float dbs[VECS_PER_THREAD][VEC];
  for (int p = 0; p < VECS_PER_THREAD && first + p * stride < width; p++) {
    if (HAS_WEIGHT) {
      load_vec<VEC>(w, first + p * stride, width, is_aligned, ws[p]);
    }
    for (int k = 0; k < VEC; k++) {
      dws[p][k] = 0;
      dbs[p][k] = 0;
    }
  }
  const uint lanes = min(threads.x, 32u);
  for (size_t begin = group.y; begin < rows; begin += size_t(groups.y) * lanes) {
    // A lane reads the statistics of one row for all lanes.
    const size_t own = begin + size_t(groups.y) * lane;
    float4 own_found = 0;
    if (own < rows) {
      device const float* in = statistics + 4 * own;
      own_found = float4(in[0], in[1], in[2], in[3]);
    }
    for (uint i = 0; i < lanes && begin + size_t(groups.y) * i < rows; i++) {
      const float4 of_row = simd_shuffle(own_found, i);
      const Row found = {of_row.x, of_row.y, of_row.z, of_row.w};
      const size_t start = (begin + size_t(groups.y) * i) * width;
      for (int p = 0; p < VECS_PER_THREAD && first + p * stride < width; p++) {
        float xs[VEC], dys[VEC], g[VEC], dxs[VEC];
        load_vec<VEC>(x + start, first + p * stride, width, is_aligned, xs);
        load_vec<VEC>(dy + start, first + p * stride, width, is_aligned, dys);
        times_weight<VEC, HAS_WEIGHT>(dys, ws[p], g);
        gradient<VEC>(xs, g, found, dxs);
        store_vec<VEC>(dx + start, first + p * stride, width, is_aligned, dxs);
        add_to_parameters<VEC, HAS_WEIGHT, HAS_BIAS>(xs, dys, found.mean, found.r, dws[p], dbs[p]);
      }
    }
  }
  write_partial<VEC, VECS_PER_THREAD, HAS_WEIGHT, HAS_BIAS>(
      partial, group.y, groups.y, first, stride, width, vec_aligned<VEC>(partial, width), dws, dbs);
}

// dx from x, w and dy, and (μ, r) of every row. The first VECS_PER_THREAD packs of a thread stay in
// registers; what a wider row has beyond them is read twice. Without a weight, w is not
// read.
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
  threadgroup float2 scratch[32];
  threadgroup float3 scratch3[32];
  const bool is_aligned = vec_aligned<VEC>(x, width) && vec_aligned<VEC>(dy, width) && vec_aligned<VEC>(dx, width) &&
                          (!HAS_WEIGHT || vec_aligned<VEC>(w, width));
  const size_t first = size_t(thread_index) * VEC;
  const size_t stride = size_t(threads) * VEC;
  float ws[VECS_PER_THREAD][VEC];
  if (HAS_WEIGHT) {
    for (int p = 0; p < VECS_PER_THREAD && first + p * stride < width; p++) {
      load_vec<VEC>(w, first + p * stride, width, is_aligned, ws[p]);
    }
  }

  const Counts<VEC> counts = counts_of<VEC, VEC>(first, stride, width);
  for (uint row = group; row < rows; row += groups) {
    const size_t start = size_t(row) * width;
    float xs[VECS_PER_THREAD][VEC];
    float gs[VECS_PER_THREAD][VEC];
    float dys[VEC];
    Moments<VEC> moments = {};
    for (int p = 0; p < VECS_PER_THREAD && first + p * stride < width; p++) {
      const size_t column = first + p * stride;
      load_vec<VEC>(x + start, column, width, is_aligned, xs[p]);
      load_vec<VEC>(dy + start, column, width, is_aligned, dys);
      times_weight<VEC, HAS_WEIGHT>(dys, ws[p], gs[p]);
      add_to_moments<VEC, VEC>(p, xs[p], gs[p], width - column, moments);
    }
    uint more = VECS_PER_THREAD;
    for (size_t column = first + VECS_PER_THREAD * stride; column < width; column += stride, more++) {
      float x1[VEC], dy1[VEC], w1[VEC], g1[VEC];
      load_vec<VEC>(x + start, column, width, is_aligned, x1);
      load_vec<VEC>(dy + start, column, width, is_aligned, dy1);
      if (HAS_WEIGHT) {
        load_vec<VEC>(w, column, width, is_aligned, w1);
      }
      times_weight<VEC, HAS_WEIGHT>(dy1, w1, g1);
      add_to_moments<VEC, VEC>(more, x1, g1, width - column, moments);
    }
    const Row found = statistics_of<VEC>(moments, counts, eps, scratch, scratch3, lane, simdgroup, simdgroups);
    if (thread_index == 0) {
      statistics[2 * size_t(row)] = found.mean;
      statistics[2 * size_t(row) + 1] = found.r;
    }

    for (int p = 0; p < VECS_PER_THREAD && first + p * stride < width; p++) {
      float dxs[VEC];
      gradient<VEC>(xs[p], gs[p], found, dxs);
      store_vec<VEC>(dx + start, first + p * stride, width, is_aligned, dxs);
    }
    for (size_t column = first + VECS_PER_THREAD * stride; column < width; column += stride) {
      float x1[VEC], dy1[VEC], w1[VEC], g1[VEC], dx1[VEC];
      load_vec<VEC>(x + start, column, width, is_aligned, x1);
      load_vec<VEC>(dy + start, column, width, is_aligned, dy1);
      if (HAS_WEIGHT) {
        load_vec<VEC>(w, column, width, is_aligned, w1);
      }
      times_weight<VEC, HAS_WEIGHT>(dy1, w1, g1);
      gradient<VEC>(x1, g1, found, dx1);
      store_vec<VEC>(dx + start, column, width, is_aligned, dx1);
    }
  }
}

// The groups' dw and db, for the block of columns that VECS_PER_THREAD packs of every lane make, from
// (μ, r) of the rows, which the simdgroups of a group share. Without HAS_WEIGHT, x is not
// read. P is float, or T if there is one group, whose sums are the gradients.
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
  const size_t stride = size_t(lanes) * VEC;
  const size_t first = group.x * VECS_PER_THREAD * stride + size_t(lane) * VEC;
  float dws[VECS_PER_THREAD][VEC] = {};
  float dbs[VECS_PER_THREAD][VEC] = {};
  // A simdgroup takes row `begin` and every `step`.
  const size_t step = size_t(groups.y) * simdgroups;
  for (size_t begin = size_t(group.y) * simdgroups + simdgroup; begin < rows; begin += step * lanes) {
    const size_t own = begin + step * lane;
    float2 own_found = 0;
    if (own < rows) {
      own_found = float2(statistics[2 * own], statistics[2 * own + 1]);
    }
    for (uint i = 0; i < lanes && begin + step * i < rows; i++) {
      const float2 found = simd_shuffle(own_found, i);
      const size_t start = (begin + step * i) * width;
      for (int p = 0; p < VECS_PER_THREAD && first + p * stride < width; p++) {
        float xs[VEC], dys[VEC];
        if (HAS_WEIGHT) {
          load_vec<VEC>(x + start, first + p * stride, width, is_aligned, xs);
        }
        load_vec<VEC>(dy + start, first + p * stride, width, is_aligned, dys);
        add_to_parameters<VEC, HAS_WEIGHT, HAS_BIAS>(xs, dys, found.x, found.y, dws[p], dbs[p]);
      }
    }
  }
  // Slots are written again after the barrier of the other scratch' sum.
  for (int p = 0; p < VECS_PER_THREAD; p++) {
    if (HAS_WEIGHT) {
      sum_simdgroups<VEC>(dws[p], scratch[HAS_BIAS ? 0 : p % 2], lane, simdgroup, simdgroups);
    }
    if (HAS_BIAS) {
      sum_simdgroups<VEC>(dbs[p], scratch[HAS_WEIGHT ? 1 : p % 2], lane, simdgroup, simdgroups);
    }
  }
  if (simdgroup == 0) {
    write_partial<VEC, VECS_PER_THREAD, HAS_WEIGHT, HAS_BIAS>(
        partial, group.y, groups.y, first, stride, width, vec_aligned<VEC>(partial, width), dws, dbs);
  }
}

// The sum of the groups' dw, and that of their db.
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
  sum_rows<T, VEC, ROWS_PER_STEP>(partial, groups, width, sums, scratch, group, threads, lane, simdgroup, simdgroups);
}
