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
// rows group, group + groups, …, so any number of groups is right. The first VECS_PER_THREAD packs of VEC elements
// of a thread stay in registers; what a wider row has beyond them is read twice.
//
// Device traffic, in elements of T: 3·N·D, and 2 more for each element beyond the
// registers.

#include "rows.h"

// Adds the products of a pack.
template <int VEC>
inline void add_products(thread const float* y, thread const float* dy, thread float* products) {
  for (int k = 0; k < VEC; k++) {
    products[k] += y[k] * dy[k];
  }
}

// dx of a pack.
template <int VEC>
inline void gradient(thread const float* y, thread const float* dy, float s, thread float* dx) {
  for (int k = 0; k < VEC; k++) {
    dx[k] = y[k] * (dy[k] - s);
  }
}

template <typename T, int VEC, int VECS_PER_THREAD>
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
  threadgroup float scratch[2][32];
  const bool is_aligned = vec_aligned<VEC>(y, width) && vec_aligned<VEC>(dy, width) && vec_aligned<VEC>(dx, width);
  const size_t stride = size_t(threads) * VEC;
  const size_t first = size_t(thread_index) * VEC;

  uint buffer = 0;
  for (uint row = group; row < rows; row += groups, buffer ^= 1) {
    const size_t start = size_t(row) * width;
    float ys[VECS_PER_THREAD][VEC];
    float dys[VECS_PER_THREAD][VEC];
    float products[VEC] = {};
    for (int p = 0; p < VECS_PER_THREAD && first + p * stride < width; p++) {
      load_vec<VEC>(y + start, first + p * stride, width, is_aligned, ys[p]);
      load_vec<VEC>(dy + start, first + p * stride, width, is_aligned, dys[p]);
      add_products<VEC>(ys[p], dys[p], products);
    }
    for (size_t column = first + VECS_PER_THREAD * stride; column < width; column += stride) {
      float y1[VEC], dy1[VEC];
      load_vec<VEC>(y + start, column, width, is_aligned, y1);
      load_vec<VEC>(dy + start, column, width, is_aligned, dy1);
      add_products<VEC>(y1, dy1, products);
    }
    const float s = threadgroup_sum(pairwise_sum<VEC>(products), scratch[buffer], lane, simdgroup, simdgroups);

    for (int p = 0; p < VECS_PER_THREAD && first + p * stride < width; p++) {
      float dxs[VEC];
      gradient<VEC>(ys[p], dys[p], s, dxs);
      store_vec<VEC>(dx + start, first + p * stride, width, is_aligned, dxs);
    }
    for (size_t column = first + VECS_PER_THREAD * stride; column < width; column += stride) {
      float y1[VEC], dy1[VEC], dx1[VEC];
      load_vec<VEC>(y + start, column, width, is_aligned, y1);
      load_vec<VEC>(dy + start, column, width, is_aligned, dy1);
      gradient<VEC>(y1, dy1, s, dx1);
      store_vec<VEC>(dx + start, column, width, is_aligned, dx1);
    }
  }
}
