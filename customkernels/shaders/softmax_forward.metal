// Softmax of N rows of width D: y_j = exp(x_j − m) / Σ_k exp(x_k − m), m = max_k x_k.
//
// Storage is T; every sum and quotient is in float. The sum runs in an order that the
// launch alone decides, so results are the same bits every time.
//
// A row with a NaN or +∞, or with nothing but −∞, becomes NaN, as x − m is for its largest
// element.
//
// Launch (threads): groups of whole simdgroups, at most 32, or of a part of one; a group takes
// rows group, group + groups, …, so any number of groups is right. The first R packs of C elements
// of a thread stay in registers; what a wider row has beyond them is read three times.
//
// Device traffic, in elements of T: 2·N·D, and 2 more for each element beyond the
// registers.

#include "rows.h"

// Reads the pack at a column, with −∞ beyond the row's end.
template <int C, typename T>
inline void read_exponents(device const T* row, size_t column, size_t width, bool is_packed, thread float* x) {
  read<C>(row, column, width, is_packed, x);
  if (column + C > width) {
    for (int k = 0; k < C; k++) {
      x[k] = column + k < width ? x[k] : -INFINITY;
    }
  }
}

// Each lane's larger one; a NaN is no number to be larger.
template <int C>
inline void keep_larger(thread const float* x, thread float* maxima) {
  for (int k = 0; k < C; k++) {
    maxima[k] = x[k] > maxima[k] ? x[k] : maxima[k];
  }
}

// x becomes exp(x − m), which sums has added to it.
template <int C>
inline void exponentiate(thread float* x, float m, thread float* sums) {
  for (int k = 0; k < C; k++) {
    x[k] = exp(x[k] - m);
    sums[k] += x[k];
  }
}

// Writes a pack of exp(x − m), divided by the row's sum.
template <int C, typename T>
inline void write_quotients(
    device T* row, size_t column, size_t width, bool is_packed, thread const float* exponentials, float sum) {
  float y[C];
  for (int k = 0; k < C; k++) {
    y[k] = exponentials[k] / sum;
  }
  write<C>(row, column, width, is_packed, y);
}

template <typename T, int C, int R>
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
  threadgroup float max_slots[32];
  threadgroup float slots[32];
  const bool is_packed = packed<C>(x, width) && packed<C>(y, width);
  const size_t stride = size_t(threads) * C;
  const size_t first = size_t(thread_index) * C;

  for (uint row = group; row < rows; row += groups) {
    device const T* from = x + size_t(row) * width;
    device T* to = y + size_t(row) * width;
    float held[R][C];
    float maxima[C];
    for (int k = 0; k < C; k++) {
      maxima[k] = -INFINITY;
    }
    for (int p = 0; p < R && first + p * stride < width; p++) {
      read_exponents<C>(from, first + p * stride, width, is_packed, held[p]);
      keep_larger<C>(held[p], maxima);
    }
    for (size_t column = first + R * stride; column < width; column += stride) {
      float more[C];
      read_exponents<C>(from, column, width, is_packed, more);
      keep_larger<C>(more, maxima);
    }
    float m = maxima[0];
    for (int k = 1; k < C; k++) {
      m = maxima[k] > m ? maxima[k] : m;
    }
    m = threadgroup_max(m, max_slots, lane, simdgroup, simdgroups);

    float sums[C] = {};
    for (int p = 0; p < R && first + p * stride < width; p++) {
      exponentiate<C>(held[p], m, sums);
    }
    for (size_t column = first + R * stride; column < width; column += stride) {
      float more[C];
      read_exponents<C>(from, column, width, is_packed, more);
      exponentiate<C>(more, m, sums);
    }
    const float sum = threadgroup_sum(sum_of<C>(sums), slots, lane, simdgroup, simdgroups);

    for (int p = 0; p < R && first + p * stride < width; p++) {
      write_quotients<C>(to, first + p * stride, width, is_packed, held[p], sum);
    }
    for (size_t column = first + R * stride; column < width; column += stride) {
      float more[C];
      float unused[C] = {};
      read_exponents<C>(from, column, width, is_packed, more);
      exponentiate<C>(more, m, unused);
      write_quotients<C>(to, column, width, is_packed, more, sum);
    }
  }
}
