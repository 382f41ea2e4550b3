// Backward pass of the softmax, for each of N rows of width D.
//
// Forward, y_j = exp(x_j) / Σ_k exp(x_k). With dy the cotangent of y and
// ∂y_k/∂x_j = y_k·([j = k] − y_j):
//
//   dx_j = y_j · (dy_j − s),  s = Σ_k y_k · dy_k
//
// Storage is T; every product and sum is in float. The sum runs in an order that the
// launch alone decides, so results are the same bits every time.
//
// Launch (threads): groups of whole simdgroups, at most 32, or of a part of one; a group takes
// rows group, group + groups, …, so any number of groups is right. The first R packs of C elements
// of a thread stay in registers; what a wider row has beyond them is read twice.
//
// Device traffic, in elements of T: 3·N·D, and 2 more for each element beyond the
// registers.

#include "rows.h"

// Adds the products of a pack.
template <int C>
inline void add_products(thread const float* y, thread const float* dy, thread float* products) {
  for (int k = 0; k < C; k++) {
    products[k] += y[k] * dy[k];
  }
}

// dx of a pack.
template <int C>
inline void gradient(thread const float* y, thread const float* dy, float s, thread float* dx) {
  for (int k = 0; k < C; k++) {
    dx[k] = y[k] * (dy[k] - s);
  }
}

template <typename T, int C, int R>
[[kernel]] void softmax_backward(
    device const T* y [[buffer(0)]],
    device const T* dy [[buffer(1)]],
    constant uint& rows [[buffer(2)]],
    constant uint& width [[buffer(3)]],
    device T* dx [[buffer(4)]],
    uint group [[threadgroup_position_in_grid]],
    uint groups [[threadgroups_per_grid]],
    uint thread_index [[thread_position_in_threadgroup]],
    uint threads [[threads_per_threadgroup]],
    uint lane [[thread_index_in_simdgroup]],
    uint simdgroup [[simdgroup_index_in_threadgroup]],
    uint simdgroups [[simdgroups_per_threadgroup]]) {
  threadgroup float slots[2][32];
  const bool is_packed = packed<C>(y, width) && packed<C>(dy, width) && packed<C>(dx, width);
  const size_t stride = size_t(threads) * C;
  const size_t first = size_t(thread_index) * C;

  uint turn = 0;
  for (uint row = group; row < rows; row += groups, turn ^= 1) {
    const size_t start = size_t(row) * width;
    float ys[R][C];
    float dys[R][C];
    float products[C] = {};
    for (int p = 0; p < R && first + p * stride < width; p++) {
      read<C>(y + start, first + p * stride, width, is_packed, ys[p]);
      read<C>(dy + start, first + p * stride, width, is_packed, dys[p]);
      add_products<C>(ys[p], dys[p], products);
    }
    for (size_t column = first + R * stride; column < width; column += stride) {
      float y1[C], dy1[C];
      read<C>(y + start, column, width, is_packed, y1);
      read<C>(dy + start, column, width, is_packed, dy1);
      add_products<C>(y1, dy1, products);
    }
    const float s = threadgroup_sum(sum_of<C>(products), slots[turn], lane, simdgroup, simdgroups);

    for (int p = 0; p < R && first + p * stride < width; p++) {
      float dxs[C];
      gradient<C>(ys[p], dys[p], s, dxs);
      write<C>(dx + start, first + p * stride, width, is_packed, dxs);
    }
    for (size_t column = first + R * stride; column < width; column += stride) {
      float y1[C], dy1[C], dx1[C];
      read<C>(y + start, column, width, is_packed, y1);
      read<C>(dy + start, column, width, is_packed, dy1);
      gradient<C>(y1, dy1, s, dx1);
      write<C>(dx + start, column, width, is_packed, dx1);
    }
  }
}
