// Softmax of N rows of width D: y_j = exp(x_j − m) / Σ_k exp(x_k − m), m = max_k x_k.
//
// Storage is T; every sum and quotient is in float. The sum runs in an order that the
// launch alone decides, so results are the same bits every time.
//
// A row with a NaN or +∞, or with nothing but −∞, becomes NaN, as x − m is for its largest
// element.
//
// Launch (threads): groups of whole simdgroups, at most 32, or of a part of one; a group takes
// rows group, group + groups, …, so any number of groups is right. The first VECS_PER_THREAD packs of VEC elements
// of a thread stay in registers; what a wider row has beyond them is read three times.
//
// Device traffic, in elements of T: 2·N·D, and 2 more for each element beyond the
// registers.

#include "rows.h"

// Reads the pack at a column, with −∞ beyond the row's end.
template <int VEC, typename T>
inline void load_logits(device const T* row, size_t column, size_t width, bool is_aligned, thread float* x) {
  load_vec<VEC>(row, column, width, is_aligned, x);
  if (column + VEC > width) {
    for (int k = 0; k < VEC; k++) {
      x[k] = column + k < width ? x[k] : -INFINITY;
    }
  }
}

// Each lane's larger one; a NaN is no number to be larger.
template <int VEC>
inline void keep_larger(thread const float* x, thread float* maxima) {
  for (int k = 0; k < VEC; k++) {
    maxima[k] = x[k] > maxima[k] ? x[k] : maxima[k];
  }
}

// x becomes exp(x − m), which sums has added to it.
template <int VEC>
inline void exponentiate(thread float* x, float m, thread float* sums) {
  for (int k = 0; k < VEC; k++) {
    x[k] = exp(x[k] - m);
    sums[k] += x[k];
  }
}

// Writes a pack of exp(x − m), divided by the row's sum.
template <int VEC, typename T>
inline void write_quotients(
    device T* row, size_t column, size_t width, bool is_aligned, thread const float* exponentials, float sum) {
  float y[VEC];
  for (int k = 0; k < VEC; k++) {
    y[k] = exponentials[k] / sum;
  }
  store_vec<VEC>(row, column, width, is_aligned, y);
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
  const bool is_aligned = vec_aligned<VEC>(x, width) && vec_aligned<VEC>(y, width);
  const size_t stride = size_t(threads) * VEC;
  const size_t first = size_t(thread_index) * VEC;

  for (uint row = group; row < rows; row += groups) {
    device const T* from = x + size_t(row) * width;
    device T* to = y + size_t(row) * width;
    float held[VECS_PER_THREAD][VEC];
    float maxima[VEC];
    for (int k = 0; k < VEC; k++) {
      maxima[k] = -INFINITY;
    }
    for (int p = 0; p < VECS_PER_THREAD && first + p * stride < width; p++) {
      load_logits<VEC>(from, first + p * stride, width, is_aligned, held[p]);
      keep_larger<VEC>(held[p], maxima);
    }
    for (size_t column = first + VECS_PER_THREAD * stride; column < width; column += stride) {
      float more[VEC];
      load_logits<VEC>(from, column, width, is_aligned, more);
      keep_larger<VEC>(more, maxima);
    }
    float m = maxima[0];
    for (int k = 1; k < VEC; k++) {
      m = maxima[k] > m ? maxima[k] : m;
    }
    m = threadgroup_max(m, max_scratch, lane, simdgroup, simdgroups);

    float sums[VEC] = {};
    for (int p = 0; p < VECS_PER_THREAD && first + p * stride < width; p++) {
      exponentiate<VEC>(held[p], m, sums);
    }
    for (size_t column = first + VECS_PER_THREAD * stride; column < width; column += stride) {
      float more[VEC];
      load_logits<VEC>(from, column, width, is_aligned, more);
      exponentiate<VEC>(more, m, sums);
    }
    const float sum = threadgroup_sum(pairwise_sum<VEC>(sums), scratch, lane, simdgroup, simdgroups);

    for (int p = 0; p < VECS_PER_THREAD && first + p * stride < width; p++) {
      write_quotients<VEC>(to, first + p * stride, width, is_aligned, held[p], sum);
    }
    for (size_t column = first + VECS_PER_THREAD * stride; column < width; column += stride) {
      float more[VEC];
      float unused[VEC] = {};
      load_logits<VEC>(from, column, width, is_aligned, more);
      exponentiate<VEC>(more, m, unused);
      write_quotients<VEC>(to, column, width, is_aligned, more, sum);
    }
  }
}
