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
// rows group, group + groups, …, so any number of groups is right. The first VECS_PER_THREAD packs of VEC elements
// of a thread stay in registers; what a wider row has beyond them is read twice.
//
// Device traffic, in elements of T: 3·N·D and 4·N·D; wider rows read x (and residual)
// once more.

#include "rows.h"

template <typename T, int VEC, int VECS_PER_THREAD, bool HAS_WEIGHT>
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
  threadgroup float scratch[2][32];
  const bool is_aligned = vec_aligned<VEC>(x, width) && vec_aligned<VEC>(residual, width) &&
                          vec_aligned<VEC>(out, width) && (!HAS_WEIGHT || vec_aligned<VEC>(w, width));
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
    float xs[VECS_PER_THREAD][VEC];
    float squares[VEC] = {};
    for (int p = 0; p < VECS_PER_THREAD && first + p * stride < width; p++) {
      load_vec<VEC>(x + start, first + p * stride, width, is_aligned, xs[p]);
      add_squares<VEC>(xs[p], squares);
    }
    for (size_t column = first + VECS_PER_THREAD * stride; column < width; column += stride) {
      float x1[VEC];
      load_vec<VEC>(x + start, column, width, is_aligned, x1);
      add_squares<VEC>(x1, squares);
    }
    const float sum = threadgroup_sum(pairwise_sum<VEC>(squares), scratch[buffer], lane, simdgroup, simdgroups);
    const float r = rsqrt(sum / float(width) + eps);

    for (int p = 0; p < VECS_PER_THREAD && first + p * stride < width; p++) {
      float sums[VEC];
      load_vec<VEC>(residual + start, first + p * stride, width, is_aligned, sums);
      for (int k = 0; k < VEC; k++) {
        sums[k] += HAS_WEIGHT ? xs[p][k] * r * ws[p][k] : xs[p][k] * r;
      }
      store_vec<VEC>(out + start, first + p * stride, width, is_aligned, sums);
    }
    for (size_t column = first + VECS_PER_THREAD * stride; column < width; column += stride) {
      float x1[VEC], w1[VEC], sums[VEC];
      load_vec<VEC>(x + start, column, width, is_aligned, x1);
      load_vec<VEC>(residual + start, column, width, is_aligned, sums);
      if (HAS_WEIGHT) {
        load_vec<VEC>(w, column, width, is_aligned, w1);
      }
      for (int k = 0; k < VEC; k++) {
        sums[k] += HAS_WEIGHT ? x1[k] * r * w1[k] : x1[k] * r;
      }
      store_vec<VEC>(out + start, column, width, is_aligned, sums);
    }
  }
}

// x + residual, as storage rounds it.
template <typename T, int VEC>
inline void add_rounded(thread const float* x, thread const float* residual, thread float* h) {
  for (int k = 0; k < VEC; k++) {
    h[k] = float(T(x[k] + residual[k]));
  }
}

template <typename T, int VEC, int VECS_PER_THREAD, bool HAS_WEIGHT>
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
  threadgroup float scratch[2][32];
  const bool is_aligned = vec_aligned<VEC>(x, width) && vec_aligned<VEC>(residual, width) &&
                          vec_aligned<VEC>(h, width) && vec_aligned<VEC>(y, width) &&
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
    float hs[VECS_PER_THREAD][VEC];
    float squares[VEC] = {};
    for (int p = 0; p < VECS_PER_THREAD && first + p * stride < width; p++) {
      float xs[VEC], residuals[VEC];
      load_vec<VEC>(x + start, first + p * stride, width, is_aligned, xs);
      load_vec<VEC>(residual + start, first + p * stride, width, is_aligned, residuals);
      add_rounded<T, VEC>(xs, residuals, hs[p]);
      add_squares<VEC>(hs[p], squares);
      store_vec<VEC>(h + start, first + p * stride, width, is_aligned, hs[p]);
    }
    for (size_t column = first + VECS_PER_THREAD * stride; column < width; column += stride) {
      float x1[VEC], residual1[VEC], h1[VEC];
      load_vec<VEC>(x + start, column, width, is_aligned, x1);
      load_vec<VEC>(residual + start, column, width, is_aligned, residual1);
      add_rounded<T, VEC>(x1, residual1, h1);
      add_squares<VEC>(h1, squares);
      store_vec<VEC>(h + start, column, width, is_aligned, h1);
    }
    const float sum = threadgroup_sum(pairwise_sum<VEC>(squares), scratch[buffer], lane, simdgroup, simdgroups);
    const float r = rsqrt(sum / float(width) + eps);

    for (int p = 0; p < VECS_PER_THREAD && first + p * stride < width; p++) {
      float ys[VEC];
      for (int k = 0; k < VEC; k++) {
        ys[k] = HAS_WEIGHT ? hs[p][k] * r * ws[p][k] : hs[p][k] * r;
      }
      store_vec<VEC>(y + start, first + p * stride, width, is_aligned, ys);
    }
    for (size_t column = first + VECS_PER_THREAD * stride; column < width; column += stride) {
      float x1[VEC], residual1[VEC], w1[VEC], h1[VEC], ys[VEC];
      load_vec<VEC>(x + start, column, width, is_aligned, x1);
      load_vec<VEC>(residual + start, column, width, is_aligned, residual1);
      if (HAS_WEIGHT) {
        load_vec<VEC>(w, column, width, is_aligned, w1);
      }
      add_rounded<T, VEC>(x1, residual1, h1);
      for (int k = 0; k < VEC; k++) {
        ys[k] = HAS_WEIGHT ? h1[k] * r * w1[k] : h1[k] * r;
      }
      store_vec<VEC>(y + start, column, width, is_aligned, ys);
    }
  }
}
