// Backward pass of the root-mean-square norm, in three kernels.
//
// Forward, for each of N rows of width D:
//
//   r   = rsqrt(mean(x²) + eps)
//   y_j = x_j · r · w_j
//
// With dy the cotangent of y, and dr/dx_j = −r³·x_j/D:
//
//   s    = Σ_j dy_j · w_j · x_j
//   dx_j = r · (dy_j · w_j − x_j · s · r²/D)
//   dw_j = Σ_rows dy_j · x_j · r
//
// Storage is T; every product and sum is in float. Sums run in an order that the
// launch alone decides, so results are the same bits every time.
//
// Launch (threads, one dimension):
//   rms_norm_compute_rms_inv   groups of any size up to 1024; a group takes rows
//   rms_norm_backward_dx       group, group + groups, …, so any number of groups is right
//   rms_norm_backward_dw       one group for C consecutive columns a lane, 32 lanes
//                              wide at most and with at most 32 simdgroups
// A thread takes C neighbouring elements at a time: one wide load on a GPU, one
// vector on a CPU, where a group may be a single thread. Indices are size_t: a uint
// could wrap around between neighbours, for all that a compiler knows, and keeps it
// from seeing that they are neighbours.
//
// Device traffic, in elements of T: 1·N·D + 3·N·D + 2·N·D, twice what one fused
// kernel needs; rms_inv adds 3·N floats.

#include <metal_stdlib>
using namespace metal;

// Sum over the threadgroup, for every thread. The caller gives other slots (one
// float for each simdgroup) to the next call, which then needs no barrier between:
// nobody writes slots again before everybody has passed the barrier in between.
inline float threadgroup_sum(
    float value,
    threadgroup float* slots,
    uint lane,
    uint simdgroup,
    uint simdgroups) {
  value = simd_sum(value);
  if (simdgroups == 1) {
    return value;
  }
  if (lane == 0) {
    slots[simdgroup] = value;
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  // Every thread adds all of them up: right for a last simdgroup of any size.
  value = 0;
  for (uint g = 0; g < simdgroups; g++) {
    value += slots[g];
  }
  return value;
}

// rms_inv[row] = rsqrt(mean(x[row]²) + eps)
template <typename T, int C>
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
  threadgroup float slots[2][32];
  uint turn = 0;
  for (uint row = group; row < rows; row += groups, turn ^= 1) {
    const size_t start = size_t(row) * width;
    float sums[C] = {};
    size_t j = thread_index * C;
    for (; j + C <= width; j += threads * C) {
      for (int k = 0; k < C; k++) {
        const float v = float(x[start + j + k]);
        sums[k] += v * v;
      }
    }
    for (; j < width; j++) {
      const float v = float(x[start + j]);
      sums[0] += v * v;
    }
    float sum = 0;
    for (int k = 0; k < C; k++) {
      sum += sums[k];
    }
    sum = threadgroup_sum(sum, slots[turn], lane, simdgroup, simdgroups);
    if (thread_index == 0) {
      rms_inv[row] = rsqrt(sum / float(width) + eps);
    }
  }
}

// dx from x, w, dy and rms_inv. Without a weight, w is not read.
template <typename T, int C, bool HAS_WEIGHT>
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
  threadgroup float slots[2][32];
  uint turn = 0;
  for (uint row = group; row < rows; row += groups, turn ^= 1) {
    const size_t start = size_t(row) * width;
    const float r = rms_inv[row];

    // s = Σ dy·w·x
    float sums[C] = {};
    size_t j = thread_index * C;
    for (; j + C <= width; j += threads * C) {
      for (int k = 0; k < C; k++) {
        const float g = HAS_WEIGHT ? float(dy[start + j + k]) * float(w[j + k]) : float(dy[start + j + k]);
        sums[k] += g * float(x[start + j + k]);
      }
    }
    for (; j < width; j++) {
      const float g = HAS_WEIGHT ? float(dy[start + j]) * float(w[j]) : float(dy[start + j]);
      sums[0] += g * float(x[start + j]);
    }
    float s = 0;
    for (int k = 0; k < C; k++) {
      s += sums[k];
    }
    s = threadgroup_sum(s, slots[turn], lane, simdgroup, simdgroups);

    // dx = r·(dy·w − x·c) with c = s·r²/D; the difference can cancel, so its product
    // is not rounded.
    const float c = s * r * r / float(width);
    j = thread_index * C;
    for (; j + C <= width; j += threads * C) {
      for (int k = 0; k < C; k++) {
        const float g = HAS_WEIGHT ? float(dy[start + j + k]) * float(w[j + k]) : float(dy[start + j + k]);
        dx[start + j + k] = T(r * fma(-float(x[start + j + k]), c, g));
      }
    }
    for (; j < width; j++) {
      const float g = HAS_WEIGHT ? float(dy[start + j]) * float(w[j]) : float(dy[start + j]);
      dx[start + j] = T(r * fma(-float(x[start + j]), c, g));
    }
  }
}

// dw[column] = Σ_rows dy·x·rms_inv. A lane owns C neighbouring columns, so that
// the lanes of a simdgroup read a row's elements side by side; the simdgroups of a
// group share the rows, and simdgroup 0 adds their sums up in order.
template <typename T, int C>
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
  threadgroup float partial[32][32];
  const uint lanes = min(threads, 32u);
  const uint column = (group * lanes + lane) * C;
  const uint own = column < width ? min(uint(C), width - column) : 0;

  float sums[C] = {};
  if (own == uint(C)) {
    for (uint row = simdgroup; row < rows; row += simdgroups) {
      const size_t i = size_t(row) * width + column;
      const float r = rms_inv[row];
      for (int k = 0; k < C; k++) {
        sums[k] += float(dy[i + k]) * float(x[i + k]) * r;
      }
    }
  } else {
    for (uint row = simdgroup; row < rows; row += simdgroups) {
      const size_t i = size_t(row) * width + column;
      const float r = rms_inv[row];
      for (uint k = 0; k < own; k++) {
        sums[k] += float(dy[i + k]) * float(x[i + k]) * r;
      }
    }
  }

  for (uint k = 0; k < uint(C); k++) {
    float sum = sums[k];
    if (simdgroups > 1) {
      // The first barrier keeps the last turn's readers from this turn's writers.
      threadgroup_barrier(mem_flags::mem_threadgroup);
      partial[simdgroup][lane] = sum;
      threadgroup_barrier(mem_flags::mem_threadgroup);
      sum = 0;
      if (simdgroup == 0) {
        for (uint g = 0; g < simdgroups; g++) {
          sum += partial[g][lane];
        }
      }
    }
    if (simdgroup == 0 && k < own) {
      dw[column + k] = T(sum);
    }
  }
}
