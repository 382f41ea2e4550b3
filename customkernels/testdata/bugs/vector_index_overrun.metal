// Indexes the elements of a vector. The index of every fifth thread is one too large.
//
// launch: vector_index_overrun_bug vector_index_overrun_fixed
//   with: grid=64 threadgroup=64 x=uint32[64]:iota y=out:float32[64]
#include <metal_stdlib>
using namespace metal;

kernel void vector_index_overrun_bug(
    device const uint* x [[buffer(0)]],
    device float* y [[buffer(1)]],
    uint i [[thread_position_in_grid]]) {
  const float4 v = float4(1, 2, 3, 4);
  y[i] = v[x[i] % 5];  // want: out-of-bounds
}

kernel void vector_index_overrun_fixed(
    device const uint* x [[buffer(0)]],
    device float* y [[buffer(1)]],
    uint i [[thread_position_in_grid]]) {
  const float4 v = float4(1, 2, 3, 4);
  y[i] = v[x[i] % 4];
}
