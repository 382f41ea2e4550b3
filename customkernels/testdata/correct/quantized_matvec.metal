// The product of a quantized matrix and a vector.
//
//   y_r = Σ_c w[r, c] · x_c,   w[r, c] = scale[r, g] · code[r, c] + bias[r, g],   g = ⌊c/G⌋
//
// A uint holds eight 4-bit codes, lowest bits first, or four 8-bit codes, which as_type separates. Groups of G = 32
// columns share scale and bias, so Σ = scale·Σ code·x + bias·Σ x.
//
// Launch: one simdgroup per row, any number of simdgroups per threadgroup; grid 32·rows.

#include <metal_stdlib>
using namespace metal;

constant constexpr uint group_columns = 32;

template <typename T>
[[kernel]] void matvec_4bit(
    device const uint* codes [[buffer(0)]],
    device const T* scale [[buffer(1)]],
    device const T* bias [[buffer(2)]],
    device const T* x [[buffer(3)]],
    constant uint& columns [[buffer(4)]],
    device T* y [[buffer(5)]],
    uint i [[thread_position_in_grid]],
    uint lane [[thread_index_in_simdgroup]]) {
  const uint row = i / 32;
  const uint words = columns / 8;
  const uint groups = columns / group_columns;
  float sum = 0;
  for (uint w = lane; w < words; w += 32) {
    const uint packed = codes[row * words + w];
    const uint g = row * groups + w * 8 / group_columns;
    float products = 0, plain = 0;
    for (uint e = 0; e < 8; e++) {
      const float v = float(x[w * 8 + e]);
      products += float((packed >> (4 * e)) & 15u) * v;
      plain += v;
    }
    sum += float(scale[g]) * products + float(bias[g]) * plain;
  }
  sum = simd_sum(sum);
  if (lane == 0) {
    y[row] = T(sum);
  }
}

template <typename T>
[[kernel]] void matvec_8bit(
    device const uint* codes [[buffer(0)]],
    device const T* scale [[buffer(1)]],
    device const T* bias [[buffer(2)]],
    device const T* x [[buffer(3)]],
    constant uint& columns [[buffer(4)]],
    device T* y [[buffer(5)]],
    uint i [[thread_position_in_grid]],
    uint lane [[thread_index_in_simdgroup]]) {
  const uint row = i / 32;
  const uint words = columns / 4;
  const uint groups = columns / group_columns;
  float sum = 0;
  for (uint w = lane; w < words; w += 32) {
    const float4 code = float4(as_type<uchar4>(codes[row * words + w]));
    const float4 v = float4(x[w * 4], x[w * 4 + 1], x[w * 4 + 2], x[w * 4 + 3]);
    const uint g = row * groups + w * 4 / group_columns;
    sum += float(scale[g]) * dot(code, v) + float(bias[g]) * dot(float4(1), v);
  }
  sum = simd_sum(sum);
  if (simd_is_first()) {
    y[row] = T(sum);
  }
}
