// Rows of length 1: y = x/|x|, and the gradient dx = (dy − y·(y·dy))/|x|. One threadgroup works on one row.
//
// The widths of the launches are a multiple of the threadgroup's size, smaller than a simdgroup, and odd. In the last
// launch a threadgroup is a single simdgroup.
//
// launch: normalize grid=512 threadgroup=128
//   with: x=float32[4,256] width=uint32:256 y=out:float32[4,256] length=out:float32[4]
// launch: normalize grid=192 threadgroup=64
//   with: x=float32[3,5] width=uint32:5 y=out:float32[3,5] length=out:float32[3]
// launch: normalize grid=64 threadgroup=32
//   with: x=float32[2,77] width=uint32:77 y=out:float32[2,77] length=out:float32[2]
//
// launch: normalize_backward grid=512 threadgroup=128
//   with: y=float32[4,256] length=float32[4]:ones dy=float32[4,256] width=uint32:256 dx=out:float32[4,256]
// launch: normalize_backward grid=192 threadgroup=64
//   with: y=float32[3,5] length=float32[3]:ones dy=float32[3,5] width=uint32:5 dx=out:float32[3,5]
// launch: normalize_backward grid=64 threadgroup=32
//   with: y=float32[2,77] length=float32[2]:ones dy=float32[2,77] width=uint32:77 dx=out:float32[2,77]
#include <metal_stdlib>
using namespace metal;

// Returns the sum of value over the threads of the threadgroup. All threads must call it, once for each array sums,
// which has an element for each simdgroup.
float add_all(float value, threadgroup float* sums, uint lane, uint simdgroup, uint simdgroups) {
  value = simd_sum(value);
  if (lane == 0) {
    sums[simdgroup] = value;
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  float sum = 0;
  for (uint g = 0; g < simdgroups; g++) {
    sum += sums[g];
  }
  return sum;
}

[[kernel]] void normalize(
    device const float* x [[buffer(0)]],
    constant uint& width [[buffer(1)]],
    device float* y [[buffer(2)]],
    device float* length [[buffer(3)]],
    uint row [[threadgroup_position_in_grid]],
    uint thread_index [[thread_position_in_threadgroup]],
    uint threads [[threads_per_threadgroup]],
    uint lane [[thread_index_in_simdgroup]],
    uint simdgroup [[simdgroup_index_in_threadgroup]],
    uint simdgroups [[simdgroups_per_threadgroup]]) {
  threadgroup float sums[32];
  x += size_t(row) * width;
  y += size_t(row) * width;
  float squares = 0;
  for (uint j = thread_index; j < width; j += threads) {
    squares += x[j] * x[j];
  }
  float norm = sqrt(add_all(squares, sums, lane, simdgroup, simdgroups));
  for (uint j = thread_index; j < width; j += threads) {
    y[j] = x[j] / norm;
  }
  if (thread_index == 0) {
    length[row] = norm;
  }
}

[[kernel]] void normalize_backward(
    device const float* y [[buffer(0)]],
    device const float* length [[buffer(1)]],
    device const float* dy [[buffer(2)]],
    constant uint& width [[buffer(3)]],
    device float* dx [[buffer(4)]],
    uint row [[threadgroup_position_in_grid]],
    uint thread_index [[thread_position_in_threadgroup]],
    uint threads [[threads_per_threadgroup]],
    uint lane [[thread_index_in_simdgroup]],
    uint simdgroup [[simdgroup_index_in_threadgroup]],
    uint simdgroups [[simdgroups_per_threadgroup]]) {
  threadgroup float sums[32];
  y += size_t(row) * width;
  dy += size_t(row) * width;
  dx += size_t(row) * width;
  float dot = 0;
  for (uint j = thread_index; j < width; j += threads) {
    dot += y[j] * dy[j];
  }
  dot = add_all(dot, sums, lane, simdgroup, simdgroups);
  for (uint j = thread_index; j < width; j += threads) {
    dx[j] = (dy[j] - y[j] * dot) / length[row];
  }
}
