// Doubles pairs of elements with vector stores at a distance of one element instead of two.
//
// launch: overlapping_vector_stores_bug overlapping_vector_stores_fixed
//   with: init=0 grid=64 threadgroup=64 x=float32[128] y=out:float32[128]
#include <metal_stdlib>
using namespace metal;

kernel void overlapping_vector_stores_bug(
    device const float* x [[buffer(0)]],
    device float* y [[buffer(1)]],
    uint i [[thread_position_in_grid]]) {
  const float2 v = float2(x[2 * i], x[2 * i + 1]);
  *reinterpret_cast<device packed_float2*>(y + i) = packed_float2(2 * v);  // want: race
}

kernel void overlapping_vector_stores_fixed(
    device const float* x [[buffer(0)]],
    device float* y [[buffer(1)]],
    uint i [[thread_position_in_grid]]) {
  const float2 v = float2(x[2 * i], x[2 * i + 1]);
  *reinterpret_cast<device packed_float2*>(y + 2 * i) = packed_float2(2 * v);
}
