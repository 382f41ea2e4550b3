// The traversal of rows of logits by the cross-entropy kernels.
//
// A threadgroup processes a row in blocks. A thread holds VECS_PER_THREAD vectors of VEC columns of each block in
// registers (LogitBlock). INTERLEAVE neighboring threads alternate vector by vector, so that they load neighboring
// addresses. Example with VEC = 4, VECS_PER_THREAD = 2, INTERLEAVE = 2 and threads t0 to t3; t2:1 is vector 1 of t2:
//
//   column    0      4      8      12     16     20     24     28     32     36
//             | t0:0 | t1:0 | t0:1 | t1:1 | t2:0 | t3:0 | t2:1 | t3:1 | t0:0 | t1:0 | …
//             |-------- first block of the row, 32 columns ----------|-- second ---- …
//
//   VEC_STRIDE            8   columns from one vector of a thread to the next, INTERLEAVE·VEC
//   first_column(2)      16   the first column of t2
//   BlockColumns.stride  32   columns from one block of a thread to the next, threads·VECS_PER_THREAD·VEC
//
// A thread issues the loads of all its vectors of a block and then processes VECS_PER_STEP vectors per step, while
// later loads may still be in flight.

#include "soft_cap.h"
#include "vectors.h"

// The parameters of the loss, which are the same for all rows. The logits may be a slice of the classes: `width`
// columns, the classes from first_class on, out of `classes` in total.
struct LossOptions {
  size_t width;
  uint first_class;
  uint classes;
  float smoothing;
  float z_loss;
  float soft_cap;
};

// The sums over a row from which its loss and gradient are computed.
struct RowSums {
  float maximum;    // m = max s
  float exp_sum;    // l = Σ exp(s − m)
  float score_sum;  // Σ s, or 0 without label smoothing
};

// Returns the sums over no columns. The maximum is finite because −∞ − (−∞) is NaN.
inline RowSums no_sums() {
  return RowSums{-MAXFLOAT, 0, 0};
}

// The terms of a row's gradient that are the same for all of its columns:
// ds_j = prob_scale·exp(s_j − m) − smoothing_term, with target_term instead of smoothing_term at the target.
struct RowGradient {
  float maximum;         // m
  float prob_scale;      // g·(1 + 2ζ·lse)/l
  float smoothing_term;  // g·ε/V
  float target_term;     // g·(ε/V + (1−ε))
  uint target;           // column of the target; at least the width if it is in another slice
};

// The first columns of a thread's blocks: first, first + stride, …, last. If first is at least the width, the thread
// has no blocks.
struct BlockColumns {
  size_t first;
  size_t stride;
  size_t last;
};

inline BlockColumns block_columns(size_t first, size_t stride, size_t width) {
  return BlockColumns{first, stride, first < width ? first + (width - 1 - first) / stride * stride : first};
}

// Returns the score s of a logit x.
template <bool CAPPED>
inline float capped(float x, LossOptions options) {
  return CAPPED ? options.soft_cap * tanh(x / options.soft_cap) : x;
}

// Returns ds/dx at a logit x.
template <bool CAPPED>
inline float cap_slope(float x, LossOptions options) {
  return CAPPED ? tanh_slope(x / options.soft_cap) : 1.0f;
}

// Returns exp(s − maximum). For 16-bit logits it is computed as a power of two, with a relative error of
// |s − maximum|·2⁻²⁴. This takes a CPU half the time. fast::exp has an error of the same size on GPUs that compute it
// with an instruction for powers of two.
template <typename T>
inline float exp_below(float s, float maximum) {
  return sizeof(T) == sizeof(float) ? fast::exp(s - maximum) : fast::exp2((s - maximum) * M_LOG2E_F);
}

// Returns dx at a logit x, with `subtracted` the smoothing_term or the target_term of the row.
template <typename T, bool CAPPED>
inline float logit_gradient(float x, RowGradient row, float subtracted, LossOptions options) {
  const float s = capped<CAPPED>(x, options);
  return fma(exp_below<T>(s, row.maximum), row.prob_scale, -subtracted) * cap_slope<CAPPED>(x, options);
}

// A thread's logits of one block. HELD_T, the type in registers, is T or float. With SMOOTHED, the sums over a row
// include that of the scores. In all functions `left` is the number of columns from this thread's first column in the
// block to the end of the row.
template <
    typename T,
    typename HELD_T,
    int VEC,
    int VECS_PER_THREAD,
    int VECS_PER_STEP,
    int INTERLEAVE,
    bool CAPPED,
    bool SMOOTHED>
struct LogitBlock {
  static constexpr constant int VEC_STRIDE = INTERLEAVE * VEC;

  HeldVecs<HELD_T, VEC, VECS_PER_THREAD> held;

  static size_t first_column(uint thread_index) {
    return (size_t(thread_index / INTERLEAVE) * (VECS_PER_THREAD * INTERLEAVE) + thread_index % INTERLEAVE) * VEC;
  }

  // Returns whether the last vector begins in the row. If the row is aligned, all vectors are then complete.
  static bool all_in_row(uint left) { return (VECS_PER_THREAD - 1) * VEC_STRIDE < left; }

  // Loads the thread's vectors of a block. The first vector is at `block`. In the step that contains the row's end,
  // elements beyond the end are −∞. Vectors of later steps are not loaded.
  void load(device const T* block, uint left, bool is_aligned) {
    if (is_aligned && all_in_row(left)) {
      for (int v = 0; v < VECS_PER_THREAD; v++) {
        load_vec_held(block, v, v * VEC_STRIDE, left, held);
      }
      return;
    }
    for (int v = 0; v < VECS_PER_THREAD && uint(v / VECS_PER_STEP * VECS_PER_STEP * VEC_STRIDE) < left; v++) {
      const uint column = v * VEC_STRIDE;
      if (is_aligned && column < left) {
        load_vec_held(block, v, column, left, held);
        continue;
      }
      thread HELD_T* const values = reinterpret_cast<thread HELD_T*>(held.vecs[v].values);
      if (column + VEC <= left) {
        convert_vec<VEC, HELD_T>(block + column, values);
        continue;
      }
      for (int k = 0; k < VEC; k++) {
        values[k] = column + k < left ? HELD_T(block[column + k]) : HELD_T(-INFINITY);
      }
    }
  }

  // Returns the logit of element k of vector v.
  float logit(int v, int k) const { return float(reinterpret_cast<thread const HELD_T*>(held.vecs[v].values)[k]); }

  // Returns the score of element k of vector v, or −∞ beyond the row's end.
  float score(int v, int k, uint left, LossOptions options) const {
    const float s = capped<CAPPED>(logit(v, k), options);
    return CAPPED && uint(v * VEC_STRIDE + k) >= left ? -INFINITY : s;
  }

  // Returns the largest logit of the step that begins with vector `step`.
  float step_maximum(int step) const {
    float maxima[VEC];
    for (int k = 0; k < VEC; k++) {
      maxima[k] = logit(step, k);
    }
    for (int v = step + 1; v < step + VECS_PER_STEP; v++) {
      for (int k = 0; k < VEC; k++) {
        maxima[k] = max(maxima[k], logit(v, k));
      }
    }
    return Pairwise<VEC>::maximum(maxima);
  }

  // Adds vector v to VEC sums of exp(s − maximum) and, with SMOOTHED, of s.
  void add_vec(
      int v, float maximum, uint left, LossOptions options, thread float* exp_sums, thread float* score_sums) const {
    float scores[VEC];
    for (int k = 0; k < VEC; k++) {
      scores[k] = score(v, k, left, options);
      exp_sums[k] += exp_below<T>(scores[k], maximum);
    }
    for (int k = 0; SMOOTHED && k < VEC; k++) {
      score_sums[k] += uint(v * VEC_STRIDE + k) < left ? scores[k] : 0.0f;
    }
  }

  // Adds the block to the sums of a thread, step by step. exp_sum is rescaled if the maximum grows. Prefetches the
  // block at `next`.
  void add_to(thread RowSums& sums, device const T* next, uint left, LossOptions options) const {
    float score_sums[VEC] = {};
    for (int step = 0; step < VECS_PER_THREAD && uint(step * VEC_STRIDE) < left; step += VECS_PER_STEP) {
      const float maximum = max(sums.maximum, capped<CAPPED>(step_maximum(step), options));
      float exp_sums[VEC] = {};
      for (int v = step; v < step + VECS_PER_STEP; v++) {
        prefetch_load<VEC>(next + v * VEC_STRIDE);
        add_vec(v, maximum, left, options, exp_sums, score_sums);
      }
      sums.exp_sum = fma(sums.exp_sum, exp_below<T>(sums.maximum, maximum), Pairwise<VEC>::sum(exp_sums));
      sums.maximum = maximum;
    }
    if (SMOOTHED) {
      sums.score_sum += Pairwise<VEC>::sum(score_sums);
    }
  }

  // Adds the thread's blocks of a row to the sums. If is_loaded, registers hold the first block already. The last block
  // remains there.
  void add_blocks(
      thread RowSums& sums,
      device const T* row,
      BlockColumns columns,
      bool is_loaded,
      bool is_aligned,
      LossOptions options) {
    for (size_t begin = columns.first; begin < options.width; begin += columns.stride) {
      const uint left = options.width - begin;
      if (begin != columns.first || !is_loaded) {
        load(row + begin, left, is_aligned);
      }
      add_to(sums, row + begin + min(columns.stride, size_t(left)), left, options);
    }
  }

  // Writes dx at vector v, which begins at `column`. Prefetches the vector that is `next` columns away.
  void write_vec(
      int v,
      size_t column,
      long next,
      RowGradient row,
      device const T* x,
      device T* dx,
      bool is_aligned,
      LossOptions options) const {
    float values[VEC];
    prefetch_load<VEC>(x + column + next);
    prefetch_store<VEC>(dx + column + next);
    for (int k = 0; k < VEC; k++) {
      values[k] = logit_gradient<T, CAPPED>(logit(v, k), row, row.smoothing_term, options);
    }
    store_vec<VEC>(dx, column, options.width, is_aligned, values);
  }

  // Writes dx of the block, which begins at column `begin` of the row x. The thread's next block is `next` columns
  // away. The target's dx is overwritten last, because a test for the target in each vector would take longer. Its
  // logit is read first, because dx may be x.
  void write_gradient(
      RowGradient row, device const T* x, device T* dx, size_t begin, long next, bool is_aligned, LossOptions options)
      const {
    const uint left = options.width - begin;
    const uint offset = row.target - uint(begin);
    const bool has_target =
        offset < uint(VECS_PER_THREAD * VEC_STRIDE) && offset % VEC_STRIDE < uint(VEC) && row.target < options.width;
    const float target_logit = has_target ? float(x[row.target]) : 0;
    if (is_aligned && all_in_row(left)) {
      for (int v = 0; v < VECS_PER_THREAD; v++) {
        write_vec(v, begin + v * VEC_STRIDE, next, row, x, dx, true, options);
      }
    } else {
      for (int v = 0; v < VECS_PER_THREAD && uint(v * VEC_STRIDE) < left; v++) {
        write_vec(v, begin + v * VEC_STRIDE, next, row, x, dx, is_aligned, options);
      }
    }
    if (has_target) {
      dx[row.target] = T(logit_gradient<T, CAPPED>(target_logit, row, row.target_term, options));
    }
  }

  // Writes dx of all blocks of the thread, from the last to the first. Registers hold the last block, and a cache is
  // likely to still have the blocks read just before it. The thread's next row is `row_step` elements away.
  void write_gradients_backward(
      RowGradient row,
      device const T* x,
      device T* dx,
      long row_step,
      BlockColumns columns,
      bool is_aligned,
      LossOptions options) {
    for (size_t begin = columns.last; columns.first < options.width; begin -= columns.stride) {
      if (begin != columns.last) {
        load(x + begin, options.width - begin, is_aligned);
      }
      const bool is_last = begin == columns.first;
      const long next = is_last ? row_step + long(columns.last - begin) : -long(columns.stride);
      write_gradient(row, x, dx, begin, next, is_aligned, options);
      if (is_last) {
        break;
      }
    }
  }

  // Writes zeros, the dx of an ignored row.
  static void write_zeros(device T* dx, BlockColumns columns, bool is_aligned, size_t width) {
    float zeros[VEC] = {};
    for (size_t begin = columns.first; begin < width; begin += columns.stride) {
      for (int v = 0; v < VECS_PER_THREAD && begin + v * VEC_STRIDE < width; v++) {
        store_vec<VEC>(dx, begin + v * VEC_STRIDE, width, is_aligned, zeros);
      }
    }
  }
};
