// Softmax over rows, one threadgroup per row. This is an example of a shader with launch descriptions:
// "mlxgrad sanitize examples/softmax.metal" runs each of them under the checker.
//
// The first width is a multiple of the threadgroup's size, the others are not.
// The last launch has a single simdgroup.
//
// launch: softmax grid=1280 threadgroup=128 T=float32
//   with: x=float32[10,512] width=uint32:512 y=out:float32[10,512]
//
// launch: softmax grid=480 threadgroup=96 T=float16
//   with: x=float16[5,77] width=uint32:77 y=out:float16[5,77]
//
// launch: softmax grid=64 threadgroup=32 T=bfloat16
//   with: x=bfloat16[2,33]:-9..9 width=uint32:33 y=out:bfloat16[2,33]
#include <metal_stdlib>
using namespace metal;

template <typename T>
[[kernel]] void softmax(
    device const T* x [[buffer(0)]],
    constant uint& width [[buffer(1)]],
    device T* y [[buffer(2)]],
    uint row [[threadgroup_position_in_grid]],
    uint thread_index [[thread_position_in_threadgroup]],
    uint threads [[threads_per_threadgroup]],
    uint lane [[thread_index_in_simdgroup]],
    uint simdgroup [[simdgroup_index_in_threadgroup]],
    uint simdgroups [[simdgroups_per_threadgroup]]) {
  threadgroup float maxima[32];
  threadgroup float sums[32];
  x += size_t(row) * width;
  y += size_t(row) * width;

  float largest = -INFINITY;
  for (uint j = thread_index; j < width; j += threads) {
    largest = max(largest, float(x[j]));
  }
  largest = simd_max(largest);
  if (lane == 0) {
    maxima[simdgroup] = largest;
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (uint g = 0; g < simdgroups; g++) {
    largest = max(largest, maxima[g]);
  }

  float sum = 0;
  for (uint j = thread_index; j < width; j += threads) {
    sum += exp(float(x[j]) - largest);
  }
  sum = simd_sum(sum);
  if (lane == 0) {
    sums[simdgroup] = sum;
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  sum = 0;
  for (uint g = 0; g < simdgroups; g++) {
    sum += sums[g];
  }

  for (uint j = thread_index; j < width; j += threads) {
    y[j] = T(exp(float(x[j]) - largest) / sum);
  }
}
