// Sums four neighbors with one vector load. The length is no multiple of four: the last load begins inside of the
// input and ends past it.
//
// launch: vector_load_over_end_bug vector_load_over_end_fixed
//   with: grid=16 threadgroup=16 x=float32[62] n=uint32:62 y=out:float32[16]
#include <metal_stdlib>
using namespace metal;

kernel void vector_load_over_end_bug(
    device const float* x [[buffer(0)]],
    constant uint& n [[buffer(1)]],
    device float* y [[buffer(2)]],
    uint i [[thread_position_in_grid]]) {
  const float4 v = reinterpret_cast<device const float4*>(x)[i];  // want: out-of-bounds
  const uint own = min(n - 4 * i, 4u);
  y[i] = (v.x + v.y) + (own > 2 ? v.z + v.w : 0.0f);
}

kernel void vector_load_over_end_fixed(
    device const float* x [[buffer(0)]],
    constant uint& n [[buffer(1)]],
    device float* y [[buffer(2)]],
    uint i [[thread_position_in_grid]]) {
  if (4 * i + 4 <= n) {
    const float4 v = reinterpret_cast<device const float4*>(x)[i];
    y[i] = (v.x + v.y) + (v.z + v.w);
  } else {
    float sum = 0;
    for (uint j = 4 * i; j < n; j++) {
      sum += x[j];
    }
    y[i] = sum;
  }
}
