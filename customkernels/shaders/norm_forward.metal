// Forward passes of the RMS norm and of the layer norm, for each of N rows of width D:
//
//   rms_norm_forward    y = x·r·w,            r = rsqrt(mean(x²) + eps)
//   layer_norm_forward  y = (x − μ)·r·w + b,  μ = mean(x),  r = rsqrt(mean((x − μ)²) + eps)
//
// Reference: compare/oracle/rmsnorm.go and layernorm.go.
//
// Storage is T, arithmetic float. They are for CPUs: a row stays in a cache while the passes of a kernel read it, and
// MLX composes these functions of several operations. On a GPU MLX's own kernels compute the values.
//
// Launch:
//
//   parameter   meaning                            constraint
//   VEC         elements per vector                a power of two
//   HAS_WEIGHT  use w                              without it, w is not accessed
//   HAS_BIAS    use b                              without it, b is not accessed
//   threads     per group                          32·n up to 1024, or below 32
//   groups      share the rows (group_rows)        any
//
// Device traffic in elements of T: 2·N·D, and N·D for each further pass over rows that exceed the caches: one in
// rms_norm_forward, two in layer_norm_forward.

#include "normalize.h"

template <typename T, int VEC, bool HAS_WEIGHT>
[[kernel]] void rms_norm_forward(
    device const T* x [[buffer(0)]],
    device const T* w [[buffer(1)]],
    constant uint& rows [[buffer(2)]],
    constant uint& width [[buffer(3)]],
    constant float& eps [[buffer(4)]],
    device T* y [[buffer(5)]],
    uint group [[threadgroup_position_in_grid]],
    uint groups [[threadgroups_per_grid]],
    uint thread_index [[thread_position_in_threadgroup]],
    uint threads [[threads_per_threadgroup]],
    uint lane [[thread_index_in_simdgroup]],
    uint simdgroup [[simdgroup_index_in_threadgroup]],
    uint simdgroups [[simdgroups_per_threadgroup]]) {
  threadgroup float scratch[2][32];
  const bool is_aligned =
      vec_aligned<VEC>(x, width) && vec_aligned<VEC>(y, width) && (!HAS_WEIGHT || vec_aligned<VEC>(w, width));
  const Columns<VEC> columns = row_columns<VEC>(thread_index, threads, width, is_aligned);
  const GroupRows own_rows = group_rows(group, groups, rows, threads);
  uint buffer = 0;
  for (uint row = own_rows.first; row < own_rows.end; row += own_rows.step, buffer ^= 1) {
    const size_t start = size_t(row) * width;
    float squares[VEC] = {};
    add_row_squares(x + start, columns.first, columns, squares);
    const float sum = threadgroup_sum(Pairwise<VEC>::sum(squares), scratch[buffer], lane, simdgroup, simdgroups);
    const float r = rsqrt(sum / float(width) + eps);
    for (size_t column = columns.first; column < width; column += columns.stride) {
      float xs[VEC], ws[VEC];
      columns.load(x + start, column, xs);
      load_weight<HAS_WEIGHT>(w, column, columns, ws);
      store_normalized<HAS_WEIGHT>(y + start, column, columns, xs, r, ws);
    }
  }
}

// Returns Σ x over the thread's elements of a row.
template <int VEC, typename T>
inline float row_sum(device const T* row, Columns<VEC> columns) {
  float sums[VEC] = {};
  for (size_t column = columns.first; column < columns.width; column += columns.stride) {
    float xs[VEC];
    columns.load(row, column, xs);
    add_values<VEC>(xs, sums);
  }
  return Pairwise<VEC>::sum(sums);
}

// Returns (Σ x − mean, Σ (x − mean)²) over the thread's elements of a row.
template <int VEC, typename T>
inline float2 central_sums(device const T* row, Columns<VEC> columns, float mean) {
  float sums[VEC] = {}, squares[VEC] = {};
  for (size_t column = columns.first; column < columns.width; column += columns.stride) {
    float xs[VEC];
    columns.load(row, column, xs);
    for (int k = 0; k < VEC; k++) {
      const float d = column + k < columns.width ? xs[k] - mean : 0.0f;
      sums[k] += d;
      squares[k] += d * d;
    }
  }
  return float2(Pairwise<VEC>::sum(sums), Pairwise<VEC>::sum(squares));
}

// Replaces x by (x − mean)·r·w + b.
template <int VEC, bool HAS_WEIGHT, bool HAS_BIAS>
inline void scale_and_shift(thread float* x, float mean, float r, thread const float* w, thread const float* b) {
  for (int k = 0; k < VEC; k++) {
    const float normalized = (x[k] - mean) * r;
    const float scaled = HAS_WEIGHT ? normalized * w[k] : normalized;
    x[k] = HAS_BIAS ? scaled + b[k] : scaled;
  }
}

template <typename T, int VEC, bool HAS_WEIGHT, bool HAS_BIAS>
[[kernel]] void layer_norm_forward(
    device const T* x [[buffer(0)]],
    device const T* w [[buffer(1)]],
    device const T* b [[buffer(2)]],
    constant uint& rows [[buffer(3)]],
    constant uint& width [[buffer(4)]],
    constant float& eps [[buffer(5)]],
    device T* y [[buffer(6)]],
    uint group [[threadgroup_position_in_grid]],
    uint groups [[threadgroups_per_grid]],
    uint thread_index [[thread_position_in_threadgroup]],
    uint threads [[threads_per_threadgroup]],
    uint lane [[thread_index_in_simdgroup]],
    uint simdgroup [[simdgroup_index_in_threadgroup]],
    uint simdgroups [[simdgroups_per_threadgroup]]) {
  threadgroup float sum_scratch[32];
  threadgroup float2 central_scratch[32];
  const bool is_aligned = vec_aligned<VEC>(x, width) && vec_aligned<VEC>(y, width) &&
                          (!HAS_WEIGHT || vec_aligned<VEC>(w, width)) && (!HAS_BIAS || vec_aligned<VEC>(b, width));
  const Columns<VEC> columns = row_columns<VEC>(thread_index, threads, width, is_aligned);
  const GroupRows own_rows = group_rows(group, groups, rows, threads);
  for (uint row = own_rows.first; row < own_rows.end; row += own_rows.step) {
    const size_t start = size_t(row) * width;
    const float sum = threadgroup_sum(row_sum(x + start, columns), sum_scratch, lane, simdgroup, simdgroups);
    const float about = sum / float(width);
    const float2 central =
        threadgroup_sum(central_sums(x + start, columns, about), central_scratch, lane, simdgroup, simdgroups);
    // Σ x may be large, so its mean has a rounding error. Σ x − mean is small and corrects it.
    const float error = central.x / float(width);
    const float mean = about + error;
    const float r = rsqrt(max(central.y - central.x * error, 0.0f) / float(width) + eps);
    for (size_t column = columns.first; column < width; column += columns.stride) {
      float xs[VEC], ws[VEC], bs[VEC];
      columns.load(x + start, column, xs);
      load_weight<HAS_WEIGHT>(w, column, columns, ws);
      load_weight<HAS_BIAS>(b, column, columns, bs);
      scale_and_shift<VEC, HAS_WEIGHT, HAS_BIAS>(xs, mean, r, ws, bs);
      columns.store(y + start, column, xs);
    }
  }
}
