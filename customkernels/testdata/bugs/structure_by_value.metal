// A structure that is passed by value is read at the call. The kernel merges one partial result too many, from a
// simdgroup that does not exist.
//
// launch: structure_by_value_bug structure_by_value_fixed
//   with: grid=96,3 threadgroup=96 x=float32[3,500] width=int32:500 y=out:float32[3,500]
#include <metal_stdlib>
using namespace metal;

struct running {
  float greatest;
  float sum;
};

inline running merge(running a, running b) {
  const bool first = a.greatest > b.greatest;
  const running high = first ? a : b, low = first ? b : a;
  running r;
  r.greatest = high.greatest;
  r.sum = high.sum + (low.greatest == -INFINITY ? 0 : low.sum * fast::exp(low.greatest - high.greatest));
  return r;
}

kernel void structure_by_value_bug(
    device const float* x [[buffer(0)]],
    constant int& width [[buffer(1)]],
    device float* y [[buffer(2)]],
    uint2 group [[threadgroup_position_in_grid]],
    uint lid [[thread_index_in_threadgroup]],
    uint threads [[threads_per_threadgroup]],
    uint lane [[thread_index_in_simdgroup]],
    uint simdgroup_id [[simdgroup_index_in_threadgroup]]) {
  threadgroup running parts[32];
  x += group.y * width;
  y += group.y * width;
  running r = {-INFINITY, 0};
  for (int i = lid; i < width; i += threads) {
    running v;
    v.greatest = x[i];
    v.sum = 1;
    r = merge(r, v);
  }
  for (int d = 16; d > 0; d /= 2) {
    running other;
    other.greatest = simd_shuffle_down(r.greatest, d);
    other.sum = simd_shuffle_down(r.sum, d);
    if (lane + d < 32) {
      r = merge(r, other);
    }
  }
  if (lane == 0) {
    parts[simdgroup_id] = r;
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  r = parts[0];
  for (uint k = 1; k <= (threads + 31) / 32; k++) {
    r = merge(r, parts[k]);  // want: uninitialized-read
  }
  for (int i = lid; i < width; i += threads) {
    y[i] = exp(x[i] - r.greatest) / r.sum;
  }
}

kernel void structure_by_value_fixed(
    device const float* x [[buffer(0)]],
    constant int& width [[buffer(1)]],
    device float* y [[buffer(2)]],
    uint2 group [[threadgroup_position_in_grid]],
    uint lid [[thread_index_in_threadgroup]],
    uint threads [[threads_per_threadgroup]],
    uint lane [[thread_index_in_simdgroup]],
    uint simdgroup_id [[simdgroup_index_in_threadgroup]]) {
  threadgroup running parts[32];
  x += group.y * width;
  y += group.y * width;
  running r = {-INFINITY, 0};
  for (int i = lid; i < width; i += threads) {
    running v;
    v.greatest = x[i];
    v.sum = 1;
    r = merge(r, v);
  }
  for (int d = 16; d > 0; d /= 2) {
    running other;
    other.greatest = simd_shuffle_down(r.greatest, d);
    other.sum = simd_shuffle_down(r.sum, d);
    if (lane + d < 32) {
      r = merge(r, other);
    }
  }
  if (lane == 0) {
    parts[simdgroup_id] = r;
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  r = parts[0];
  for (uint k = 1; k < (threads + 31) / 32; k++) {
    r = merge(r, parts[k]);
  }
  for (int i = lid; i < width; i += threads) {
    y[i] = exp(x[i] - r.greatest) / r.sum;
  }
}
