// Backward pass of the root-mean-square norm: fused, and in three kernels.
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
// Storage is T; every product and sum is in float. Sums run in an order that the
// launch alone decides, so results are the same bits every time.
//
// Fused, for rows that a threadgroup can hold in its registers:
//   rms_norm_backward             a group walks over rows, keeps each in registers between
//                                 its sums and its dx, and adds up dw in registers
//   column_sum                    adds up the groups' dw
// and for wider ones:
//   rms_norm_backward_statistics  r and c of every row
//   rms_norm_backward_columns     a group does the same for a block of columns
// Separate:
//   rms_norm_compute_rms_inv, rms_norm_backward_dx, rms_norm_backward_dw
//
// Launch (threads): groups along x of whole simdgroups, at most 32, or of a part of one. In
// the kernels that walk over rows a group takes rows group, group + groups, …, so any number
// of groups is right; VECS_PER_THREAD packs of VEC elements a thread make the row (rms_norm_backward) or the
// block (rms_norm_backward_columns, whose groups along y share the rows). rms_norm_backward
// takes rows that are not packed, which are slow, in packs of VEC_UNALIGNED elements, a divisor of VECS_PER_THREAD·VEC;
// it holds the others as HELD_T, T or float, and with PREFETCH loads a row before it has summed up
// the one in front, if registers hold both, at most 32 elements a thread. The three separate
// kernels and the statistics are right for any VECS_PER_THREAD. Groups of rms_norm_backward_columns and
// rms_norm_backward_dw are whole simdgroups or one thread; one of rms_norm_backward_dw has
// at most MAX_SIMDGROUPS simdgroups, and VEC columns a lane. Indices are size_t: a uint could
// wrap around between neighbours, for all that a compiler knows, and keeps it from
// seeing that they are neighbours.
//
// Device traffic, in elements of T: fused 3·N·D (with the sum's cotangent 4·N·D), wider
// rows 5·N·D, and 2·groups·D floats for the groups' dw; separate 1·N·D + 3·N·D + 2·N·D,
// where the row fits registers.

#include "rows.h"

// Adds a pack to the row's sums: squares of x, products g·x.
template <int VEC>
inline void add_to_sums(thread const float* x, thread const float* g, thread float* squares, thread float* products) {
  for (int k = 0; k < VEC; k++) {
    squares[k] += x[k] * x[k];
    products[k] += g[k] * x[k];
  }
}

// dy becomes g, the cotangent of x·r.
template <int VEC, bool HAS_WEIGHT>
inline void times_weight(thread const float* dy, thread const float* w, thread float* g) {
  for (int k = 0; k < VEC; k++) {
    g[k] = HAS_WEIGHT ? dy[k] * w[k] : dy[k];
  }
}

// (r, c) from (Σ x², Σ g·x) and 1/D. c has no roundings of r.
inline float2 row_statistics(float2 sums, float share, float eps) {
  const float square = sums.x * share + eps;
  return float2(rsqrt(square), sums.y * share / square);
}

// dx of a pack. The difference can cancel, so its product is not rounded.
template <int VEC>
inline void gradient(thread const float* x, thread const float* g, float r, float c, thread float* dx) {
  for (int k = 0; k < VEC; k++) {
    dx[k] = r * fma(-x[k], c, g[k]);
  }
}

// What rms_norm_backward does, with packs that are whole if ALIGNED. Of rows that are not, a
// thread reads its elements again.
template <
    typename T,
    typename HELD_T,
    int VEC,
    int VECS_PER_THREAD,
    bool PREFETCH,
    bool HAS_WEIGHT,
    bool HAS_SUM,
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
  constexpr int ACCUMULATORS = VEC < 4 ? 4 : VEC;  // sums of the thread's elements
  // Registers take a row before any of it is needed; a stack takes a pack at a time.
  constexpr bool AT_ONCE = ALIGNED && VECS_PER_THREAD * VEC <= 32;

  float dws[VECS_PER_THREAD][VEC];
  for (int p = 0; p < VECS_PER_THREAD && first + p * stride < width; p++) {
    for (int k = 0; k < VEC; k++) {
      dws[p][k] = 0;
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
  const float share = 1.0f / float(width);
  uint buffer = 0;
  for (uint row = group; row < rows; row += groups, buffer ^= 1) {
    const size_t start = size_t(row) * width;
    const bool is_last = rows - row <= groups;
    HeldVecs<HELD_T, VEC, VECS_PER_THREAD> next_x, next_dy, held_dh;
    if (AT_ONCE && !PREFETCH) {
      load_row_held(x + start, width, first, stride, held_x);
      load_row_held(dy + start, width, first, stride, held_dy);
    } else if (AT_ONCE && !is_last) {
      load_row_held(x + start + step, width, first, stride, next_x);
      load_row_held(dy + start + step, width, first, stride, next_dy);
    }
    if (AT_ONCE && HAS_SUM) {
      load_row_held(dh + start, width, first, stride, held_dh);
    }

    float squares[ACCUMULATORS] = {};
    float products[ACCUMULATORS] = {};
    for (int p = 0; p < VECS_PER_THREAD && first + p * stride < width; p++) {
      float xs[VEC], dys[VEC], ws[VEC], g[VEC];
      if (ALIGNED && !AT_ONCE) {
        load_vec_held(x + start, p, first + p * stride, width, held_x);
        load_vec_held(dy + start, p, first + p * stride, width, held_dy);
      }
      held_values<ALIGNED>(held_x, x + start, p, first + p * stride, width, xs);
      held_values<ALIGNED>(held_dy, dy + start, p, first + p * stride, width, dys);
      if (HAS_WEIGHT) {
        held_values<ALIGNED>(held_w, w, p, first + p * stride, width, ws);
      }
      times_weight<VEC, HAS_WEIGHT>(dys, ws, g);
      add_to_sums<VEC>(xs, g, squares + p * VEC % ACCUMULATORS, products + p * VEC % ACCUMULATORS);
    }
    const float2 sums = threadgroup_sum(
        float2(pairwise_sum<ACCUMULATORS>(squares), pairwise_sum<ACCUMULATORS>(products)), scratch[buffer], lane,
        simdgroup, simdgroups);
    const float2 rc = row_statistics(sums, share, eps);

    for (int p = 0; p < VECS_PER_THREAD && first + p * stride < width; p++) {
      float xs[VEC], dys[VEC], ws[VEC], g[VEC], dxs[VEC];
      held_values<ALIGNED>(held_x, x + start, p, first + p * stride, width, xs);
      held_values<ALIGNED>(held_dy, dy + start, p, first + p * stride, width, dys);
      if (HAS_WEIGHT) {
        held_values<ALIGNED>(held_w, w, p, first + p * stride, width, ws);
      }
      times_weight<VEC, HAS_WEIGHT>(dys, ws, g);
      gradient<VEC>(xs, g, rc.x, rc.y, dxs);
      if (HAS_SUM) {
        float dhs[VEC];
        if (AT_ONCE) {
          held_values<true>(held_dh, dh + start, p, first + p * stride, width, dhs);
        } else {
          load_vec<VEC>(dh + start, first + p * stride, width, ALIGNED, dhs);
        }
        for (int k = 0; k < VEC; k++) {
          dxs[k] += dhs[k];
        }
      }
      store_vec<VEC>(dx + start, first + p * stride, width, ALIGNED, dxs);
      if (HAS_WEIGHT) {
        for (int k = 0; k < VEC; k++) {
          dws[p][k] += dys[k] * (xs[k] * rc.x);
        }
      }
    }
    if (AT_ONCE && PREFETCH && !is_last) {
      held_x = next_x;
      held_dy = next_dy;
    }
  }
  if (HAS_WEIGHT) {
    for (int p = 0; p < VECS_PER_THREAD && first + p * stride < width; p++) {
      store_vec<VEC>(partial_dw + size_t(group) * width, first + p * stride, width, ALIGNED, dws[p]);
    }
  }
}

// dx, and the share of dw that the group's rows have. x is what was normalised; with
// HAS_SUM it has a cotangent dh of its own, which dx gets too. Without HAS_WEIGHT, w is
// not read and partial_dw is not written.
template <
    typename T,
    typename HELD_T,
    int VEC,
    int VECS_PER_THREAD,
    int VEC_UNALIGNED,
    bool PREFETCH,
    bool HAS_WEIGHT,
    bool HAS_SUM>
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
  if (vec_aligned<VEC>(x, width) && vec_aligned<VEC>(dy, width) && vec_aligned<VEC>(dx, width) &&
      vec_aligned<VEC>(partial_dw, width) && (!HAS_WEIGHT || vec_aligned<VEC>(w, width)) &&
      (!HAS_SUM || vec_aligned<VEC>(dh, width))) {
    rms_norm_rows<T, HELD_T, VEC, VECS_PER_THREAD, PREFETCH, HAS_WEIGHT, HAS_SUM, true>(
        x, w, dy, dh, rows, width, eps, dx, partial_dw, scratch, group, groups, thread_index, threads, lane, simdgroup,
        simdgroups);
  } else {
    rms_norm_rows<T, HELD_T, VEC_UNALIGNED, VECS_PER_THREAD * VEC / VEC_UNALIGNED, false, HAS_WEIGHT, HAS_SUM, false>(
        x, w, dy, dh, rows, width, eps, dx, partial_dw, scratch, group, groups, thread_index, threads, lane, simdgroup,
        simdgroups);
  }
}

// (r, c) of every row, ROWS_PER_STEP rows at a time, so that w is read once for them. With more than
// one, a thread has a sum for each of them; with one, for each of VEC lanes, which suits a
// processor's vectors.
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
  const bool is_aligned =
      vec_aligned<VEC>(x, width) && vec_aligned<VEC>(dy, width) && (!HAS_WEIGHT || vec_aligned<VEC>(w, width));
  const float share = 1.0f / float(width);
  uint buffer = 0;
  for (size_t begin = size_t(group) * ROWS_PER_STEP; begin < rows; begin += size_t(groups) * ROWS_PER_STEP) {
    float squares[ROWS_PER_STEP][ACCUMULATORS] = {};
    float products[ROWS_PER_STEP][ACCUMULATORS] = {};
    for (size_t column = size_t(thread_index) * VEC; column < width; column += size_t(threads) * VEC) {
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
        for (int k = 0; k < VEC; k++) {
          squares[b][k % ACCUMULATORS] += xs[k] * xs[k];
          products[b][k % ACCUMULATORS] += g[k] * xs[k];
        }
      }
    }
    for (int b = 0; b < ROWS_PER_STEP && begin + b < rows; b++, buffer ^= 1) {
      const float2 sums = threadgroup_sum(
          float2(pairwise_sum<ACCUMULATORS>(squares[b]), pairwise_sum<ACCUMULATORS>(products[b])), scratch[buffer],
          lane, simdgroup, simdgroups);
      if (thread_index == 0) {
        const float2 rc = row_statistics(sums, share, eps);
        statistics[2 * (begin + b)] = rc.x;
        statistics[2 * (begin + b) + 1] = rc.y;
      }
    }
  }
}

// What rms_norm_backward does, for the block of columns that VECS_PER_THREAD packs of every thread
// make, from the statistics of the rows.
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
  const size_t stride = size_t(threads.x) * VEC;
  const size_t first = group.x * VECS_PER_THREAD * stride + size_t(thread_position.x) * VEC;

  float ws[VECS_PER_THREAD][VEC];
  float dws[VECS_PER_THREAD][VEC];
  for (int p = 0; p < VECS_PER_THREAD && first + p * stride < width; p++) {
    if (HAS_WEIGHT) {
      load_vec<VEC>(w, first + p * stride, width, is_aligned, ws[p]);
      for (int k = 0; k < VEC; k++) {
        dws[p][k] = 0;
      }
    }
  }
  for (size_t begin = group.y; begin < rows; begin += size_t(groups.y) * lanes) {
    // A lane reads the statistics of one row for all lanes.
    const size_t own = begin + size_t(groups.y) * lane;
    float2 own_rc = 0;
    if (own < rows) {
      own_rc = float2(statistics[2 * own], statistics[2 * own + 1]);
    }
    for (uint i = 0; i < lanes && begin + size_t(groups.y) * i < rows; i++) {
      const float2 rc = simd_shuffle(own_rc, i);
      const size_t start = (begin + size_t(groups.y) * i) * width;
      for (int p = 0; p < VECS_PER_THREAD && first + p * stride < width; p++) {
        float xs[VEC], dys[VEC], g[VEC], dxs[VEC];
        load_vec<VEC>(x + start, first + p * stride, width, is_aligned, xs);
        load_vec<VEC>(dy + start, first + p * stride, width, is_aligned, dys);
        times_weight<VEC, HAS_WEIGHT>(dys, ws[p], g);
        gradient<VEC>(xs, g, rc.x, rc.y, dxs);
        if (HAS_SUM) {
          float dhs[VEC];
          load_vec<VEC>(dh + start, first + p * stride, width, is_aligned, dhs);
          for (int k = 0; k < VEC; k++) {
            dxs[k] += dhs[k];
          }
        }
        store_vec<VEC>(dx + start, first + p * stride, width, is_aligned, dxs);
        if (HAS_WEIGHT) {
          for (int k = 0; k < VEC; k++) {
            dws[p][k] += dys[k] * (xs[k] * rc.x);
          }
        }
      }
    }
  }
  if (HAS_WEIGHT) {
    for (int p = 0; p < VECS_PER_THREAD && first + p * stride < width; p++) {
      store_vec<VEC>(
          partial_dw + size_t(group.y) * width, first + p * stride, width, vec_aligned<VEC>(partial_dw, width), dws[p]);
    }
  }
}

// rms_inv[row] = rsqrt(mean(x[row]²) + eps)
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
  const bool is_aligned = vec_aligned<VEC>(x, width);
  uint buffer = 0;
  for (uint row = group; row < rows; row += groups, buffer ^= 1) {
    float squares[VEC] = {};
    for (size_t column = size_t(thread_index) * VEC; column < width; column += size_t(threads) * VEC) {
      float xs[VEC];
      load_vec<VEC>(x + size_t(row) * width, column, width, is_aligned, xs);
      add_squares<VEC>(xs, squares);
    }
    const float sum = threadgroup_sum(pairwise_sum<VEC>(squares), scratch[buffer], lane, simdgroup, simdgroups);
    if (thread_index == 0) {
      rms_inv[row] = rsqrt(sum / float(width) + eps);
    }
  }
}

// dx from x, w, dy and rms_inv. The first VECS_PER_THREAD packs of a thread stay in registers; what a
// wider row has beyond them is read twice. Without a weight, w is not read.
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
  const size_t stride = size_t(threads) * VEC;
  const size_t first = size_t(thread_index) * VEC;
  float ws[VECS_PER_THREAD][VEC];
  if (HAS_WEIGHT) {
    for (int p = 0; p < VECS_PER_THREAD && first + p * stride < width; p++) {
      load_vec<VEC>(w, first + p * stride, width, is_aligned, ws[p]);
    }
  }

  uint buffer = 0;
  for (uint row = group; row < rows; row += groups, buffer ^= 1) {
    const size_t start = size_t(row) * width;
    // One lane reads it for all.
    const float r = simd_broadcast_first(lane == 0 ? rms_inv[row] : 0.0f);
    float xs[VECS_PER_THREAD][VEC];
    float gs[VECS_PER_THREAD][VEC];
    float products[VEC] = {};
    for (int p = 0; p < VECS_PER_THREAD && first + p * stride < width; p++) {
      float dys[VEC];
      load_vec<VEC>(x + start, first + p * stride, width, is_aligned, xs[p]);
      load_vec<VEC>(dy + start, first + p * stride, width, is_aligned, dys);
      times_weight<VEC, HAS_WEIGHT>(dys, ws[p], gs[p]);
      for (int k = 0; k < VEC; k++) {
        products[k] += gs[p][k] * xs[p][k];
      }
    }
    for (size_t column = first + VECS_PER_THREAD * stride; column < width; column += stride) {
      float x1[VEC], dy1[VEC], w1[VEC], g1[VEC];
      load_vec<VEC>(x + start, column, width, is_aligned, x1);
      load_vec<VEC>(dy + start, column, width, is_aligned, dy1);
      if (HAS_WEIGHT) {
        load_vec<VEC>(w, column, width, is_aligned, w1);
      }
      times_weight<VEC, HAS_WEIGHT>(dy1, w1, g1);
      for (int k = 0; k < VEC; k++) {
        products[k] += g1[k] * x1[k];
      }
    }
    const float s = threadgroup_sum(pairwise_sum<VEC>(products), scratch[buffer], lane, simdgroup, simdgroups);
    const float c = s * r * r / float(width);

    for (int p = 0; p < VECS_PER_THREAD && first + p * stride < width; p++) {
      float dxs[VEC];
      gradient<VEC>(xs[p], gs[p], r, c, dxs);
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
      gradient<VEC>(x1, g1, r, c, dx1);
      store_vec<VEC>(dx + start, column, width, is_aligned, dx1);
    }
  }
}

// dw[column] = Σ_rows dy·x·rms_inv. A lane owns VEC neighbouring columns, so that
// the lanes of a simdgroup read a row's elements side by side; the simdgroups of a
// group share the rows, and simdgroup 0 adds their sums up.
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
    float few[VEC] = {};  // the sum of some rows, whose roundings are small beside that of all
    // A lane reads the value of one row for all lanes.
    const size_t own = begin + size_t(simdgroups) * lane;
    const float own_r = own < rows ? rms_inv[own] : 0;
    for (uint i = 0; i < lanes && begin + size_t(simdgroups) * i < rows; i++) {
      const float r = simd_shuffle(own_r, i);
      const size_t start = (begin + size_t(simdgroups) * i) * width;
      if (column < width) {
        float xs[VEC], dys[VEC];
        load_vec<VEC>(x + start, column, width, is_aligned, xs);
        load_vec<VEC>(dy + start, column, width, is_aligned, dys);
        for (int k = 0; k < VEC; k++) {
          few[k] += dys[k] * (xs[k] * r);
        }
      }
    }
    for (int k = 0; k < VEC; k++) {
      sums[k] += few[k];
    }
  }
  sum_simdgroups<VEC>(sums, scratch, lane, simdgroup, simdgroups);
  if (simdgroup == 0 && column < width) {
    store_vec<VEC>(dw, column, width, vec_aligned<VEC>(dw, width), sums);
  }
}
