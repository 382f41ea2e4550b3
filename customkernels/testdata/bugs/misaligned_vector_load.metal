// Loads rows of 33 elements as vectors of four. Only every fourth row is aligned for float4.
//
// launch: misaligned_vector_load_bug misaligned_vector_load_fixed
//   with: grid=4 threadgroup=4 x=float32[4,33] y=out:float32[4]
#include <metal_stdlib>
using namespace metal;

kernel void misaligned_vector_load_bug(
    device const float* x [[buffer(0)]],
    device float* y [[buffer(1)]],
    uint i [[thread_position_in_grid]]) {
  device const float* row = x + 33 * i;
  device const float4* vectors = reinterpret_cast<device const float4*>(row);
  float sum = row[32];
  for (uint j = 0; j < 8; j++) {
    const float4 v = vectors[j];  // want: misaligned
    sum += (v.x + v.y) + (v.z + v.w);
  }
  y[i] = sum;
}

kernel void misaligned_vector_load_fixed(
    device const float* x [[buffer(0)]],
    device float* y [[buffer(1)]],
    uint i [[thread_position_in_grid]]) {
  device const float* row = x + 33 * i;
  device const packed_float4* vectors = reinterpret_cast<device const packed_float4*>(row);
  float sum = row[32];
  for (uint j = 0; j < 8; j++) {
    const float4 v = vectors[j];
    sum += (v.x + v.y) + (v.z + v.w);
  }
  y[i] = sum;
}
