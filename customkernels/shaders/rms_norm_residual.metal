// The root-mean-square norm beside a residual stream, in its two places, for each of N
// rows of width D:
//
//   rms_norm_residual   out = residual + x·r·w,   r = rsqrt(mean(x²) + eps)
//   add_rms_norm        h = x + residual,  y = h·r·w,   r = rsqrt(mean(h²) + eps)
//
// Storage is T and arithmetic float. h is rounded to T before it is normalised, so that
// y is the norm of the h that the caller gets. Backward is rms_norm_backward: of x with
// the cotangent of out, which is residual's own gradient too; of h with the cotangents
// of y and of h.
//
// Launch (threads): groups of whole simdgroups, at most 32, or of a part of one; a group takes
// rows group, group + groups, …, so any number of groups is right. The first R packs of C elements
// of a thread stay in registers; what a wider row has beyond them is read twice.
//
// Device traffic, in elements of T: 3·N·D and 4·N·D; wider rows read x (and residual)
// once more.

#include "rows.h"

template <typename T, int C, int R, bool HAS_WEIGHT>
[[kernel]] void rms_norm_residual(
    device const T* x [[buffer(0)]],
    device const T* residual [[buffer(1)]],
    device const T* w [[buffer(2)]],
    constant uint& rows [[buffer(3)]],
    constant uint& width [[buffer(4)]],
    constant float& eps [[buffer(5)]],
    device T* out [[buffer(6)]],
    uint group [[threadgroup_position_in_grid]],
    uint groups [[threadgroups_per_grid]],
    uint thread_index [[thread_position_in_threadgroup]],
    uint threads [[threads_per_threadgroup]],
    uint lane [[thread_index_in_simdgroup]],
    uint simdgroup [[simdgroup_index_in_threadgroup]],
    uint simdgroups [[simdgroups_per_threadgroup]]) {
  threadgroup float slots[2][32];
  const bool is_packed = packed<C>(x, width) && packed<C>(residual, width) && packed<C>(out, width) &&
      (!HAS_WEIGHT || packed<C>(w, width));
  const size_t stride = size_t(threads) * C;
  const size_t first = size_t(thread_index) * C;
  float ws[R][C];
  if (HAS_WEIGHT) {
    for (int p = 0; p < R && first + p * stride < width; p++) {
      read<C>(w, first + p * stride, width, is_packed, ws[p]);
    }
  }

  uint turn = 0;
  for (uint row = group; row < rows; row += groups, turn ^= 1) {
    const size_t start = size_t(row) * width;
    float xs[R][C];
    float squares[C] = {};
    for (int p = 0; p < R && first + p * stride < width; p++) {
      read<C>(x + start, first + p * stride, width, is_packed, xs[p]);
      add_squares<C>(xs[p], squares);
    }
    for (size_t column = first + R * stride; column < width; column += stride) {
      float x1[C];
      read<C>(x + start, column, width, is_packed, x1);
      add_squares<C>(x1, squares);
    }
    const float sum = threadgroup_sum(sum_of<C>(squares), slots[turn], lane, simdgroup, simdgroups);
    const float r = rsqrt(sum / float(width) + eps);

    for (int p = 0; p < R && first + p * stride < width; p++) {
      float sums[C];
      read<C>(residual + start, first + p * stride, width, is_packed, sums);
      for (int k = 0; k < C; k++) {
        sums[k] += HAS_WEIGHT ? xs[p][k] * r * ws[p][k] : xs[p][k] * r;
      }
      write<C>(out + start, first + p * stride, width, is_packed, sums);
    }
    for (size_t column = first + R * stride; column < width; column += stride) {
      float x1[C], w1[C], sums[C];
      read<C>(x + start, column, width, is_packed, x1);
      read<C>(residual + start, column, width, is_packed, sums);
      if (HAS_WEIGHT) {
        read<C>(w, column, width, is_packed, w1);
      }
      for (int k = 0; k < C; k++) {
        sums[k] += HAS_WEIGHT ? x1[k] * r * w1[k] : x1[k] * r;
      }
      write<C>(out + start, column, width, is_packed, sums);
    }
  }
}

// x + residual, as storage rounds it.
template <typename T, int C>
inline void add_rounded(thread const float* x, thread const float* residual, thread float* h) {
  for (int k = 0; k < C; k++) {
    h[k] = float(T(x[k] + residual[k]));
  }
}

template <typename T, int C, int R, bool HAS_WEIGHT>
[[kernel]] void add_rms_norm(
    device const T* x [[buffer(0)]],
    device const T* residual [[buffer(1)]],
    device const T* w [[buffer(2)]],
    constant uint& rows [[buffer(3)]],
    constant uint& width [[buffer(4)]],
    constant float& eps [[buffer(5)]],
    device T* h [[buffer(6)]],
    device T* y [[buffer(7)]],
    uint group [[threadgroup_position_in_grid]],
    uint groups [[threadgroups_per_grid]],
    uint thread_index [[thread_position_in_threadgroup]],
    uint threads [[threads_per_threadgroup]],
    uint lane [[thread_index_in_simdgroup]],
    uint simdgroup [[simdgroup_index_in_threadgroup]],
    uint simdgroups [[simdgroups_per_threadgroup]]) {
  threadgroup float slots[2][32];
  const bool is_packed = packed<C>(x, width) && packed<C>(residual, width) && packed<C>(h, width) &&
      packed<C>(y, width) && (!HAS_WEIGHT || packed<C>(w, width));
  const size_t stride = size_t(threads) * C;
  const size_t first = size_t(thread_index) * C;
  float ws[R][C];
  if (HAS_WEIGHT) {
    for (int p = 0; p < R && first + p * stride < width; p++) {
      read<C>(w, first + p * stride, width, is_packed, ws[p]);
    }
  }

  uint turn = 0;
  for (uint row = group; row < rows; row += groups, turn ^= 1) {
    const size_t start = size_t(row) * width;
    float hs[R][C];
    float squares[C] = {};
    for (int p = 0; p < R && first + p * stride < width; p++) {
      float xs[C], residuals[C];
      read<C>(x + start, first + p * stride, width, is_packed, xs);
      read<C>(residual + start, first + p * stride, width, is_packed, residuals);
      add_rounded<T, C>(xs, residuals, hs[p]);
      add_squares<C>(hs[p], squares);
      write<C>(h + start, first + p * stride, width, is_packed, hs[p]);
    }
    for (size_t column = first + R * stride; column < width; column += stride) {
      float x1[C], residual1[C], h1[C];
      read<C>(x + start, column, width, is_packed, x1);
      read<C>(residual + start, column, width, is_packed, residual1);
      add_rounded<T, C>(x1, residual1, h1);
      add_squares<C>(h1, squares);
      write<C>(h + start, column, width, is_packed, h1);
    }
    const float sum = threadgroup_sum(sum_of<C>(squares), slots[turn], lane, simdgroup, simdgroups);
    const float r = rsqrt(sum / float(width) + eps);

    for (int p = 0; p < R && first + p * stride < width; p++) {
      float ys[C];
      for (int k = 0; k < C; k++) {
        ys[k] = HAS_WEIGHT ? hs[p][k] * r * ws[p][k] : hs[p][k] * r;
      }
      write<C>(y + start, first + p * stride, width, is_packed, ys);
    }
    for (size_t column = first + R * stride; column < width; column += stride) {
      float x1[C], residual1[C], w1[C], h1[C], ys[C];
      read<C>(x + start, column, width, is_packed, x1);
      read<C>(residual + start, column, width, is_packed, residual1);
      if (HAS_WEIGHT) {
        read<C>(w, column, width, is_packed, w1);
      }
      add_rounded<T, C>(x1, residual1, h1);
      for (int k = 0; k < C; k++) {
        ys[k] = HAS_WEIGHT ? h1[k] * r * w1[k] : h1[k] * r;
      }
      write<C>(y + start, column, width, is_packed, ys);
    }
  }
}
