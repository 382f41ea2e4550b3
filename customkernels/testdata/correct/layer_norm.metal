// Layer norm of each row, several rows per threadgroup.
//
//   y_j = (x_j − μ) · rsqrt(σ² + eps) · w_j + b_j,   μ = mean(x),   σ² = mean((x − μ)²)
//
// The threadgroup computes two sums per row, in two alternating sets of slots. A set is overwritten only after the
// barrier of the other set, which every reader of the first set has passed. So a sum needs one barrier instead of
// two.
//
// Launch: threadgroups of any size. A threadgroup processes the rows group, group + groups, …

#include <metal_stdlib>
using namespace metal;

inline float group_sum(
    float value,
    threadgroup float* slots,
    uint lane,
    uint simdgroup_id,
    uint simdgroups) {
  value = simd_sum(value);
  if (lane == 0) {
    slots[simdgroup_id] = value;
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  float sum = 0;
  for (uint g = 0; g < simdgroups; g++) {
    sum += slots[g];
  }
  return sum;
}

template <typename T>
[[kernel]] void layer_norm(
    device const T* x [[buffer(0)]],
    device const T* w [[buffer(1)]],
    device const T* b [[buffer(2)]],
    constant float& eps [[buffer(3)]],
    constant uint& rows [[buffer(4)]],
    constant uint& width [[buffer(5)]],
    device T* y [[buffer(6)]],
    uint group [[threadgroup_position_in_grid]],
    uint groups [[threadgroups_per_grid]],
    uint lid [[thread_position_in_threadgroup]],
    uint threads [[threads_per_threadgroup]],
    uint lane [[thread_index_in_simdgroup]],
    uint simdgroup_id [[simdgroup_index_in_threadgroup]],
    uint simdgroups [[simdgroups_per_threadgroup]]) {
  threadgroup float slots[2][32];
  for (uint row = group; row < rows; row += groups) {
    device const T* in = x + ulong(row) * width;
    float sum = 0;
    for (uint j = lid; j < width; j += threads) {
      sum += float(in[j]);
    }
    const float mean = group_sum(sum, slots[0], lane, simdgroup_id, simdgroups) / float(width);
    float squares = 0;
    for (uint j = lid; j < width; j += threads) {
      const float d = float(in[j]) - mean;
      squares += d * d;
    }
    const float variance =
        group_sum(squares, slots[1], lane, simdgroup_id, simdgroups) / float(width);
    const float r = rsqrt(variance + eps);
    for (uint j = lid; j < width; j += threads) {
      y[ulong(row) * width + j] = T((float(in[j]) - mean) * r * float(w[j]) + float(b[j]));
    }
  }
}
