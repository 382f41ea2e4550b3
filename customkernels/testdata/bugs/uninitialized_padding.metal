// Sums a row of 50 elements in a tile padded to 64. No thread clears the padding.
//
// launch: uninitialized_padding_bug uninitialized_padding_fixed
//   with: grid=64,2 threadgroup=64 x=float32[2,50] width=uint32:50 y=out:float32[2]
#include <metal_stdlib>
using namespace metal;

kernel void uninitialized_padding_bug(
    device const float* x [[buffer(0)]],
    constant uint& width [[buffer(1)]],
    device float* y [[buffer(2)]],
    uint2 at [[thread_position_in_grid]]) {
  threadgroup float tile[64];
  if (at.x < width) {
    tile[at.x] = x[at.y * width + at.x];
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (at.x == 0) {
    float sum = 0;
    for (uint j = 0; j < 64; j++) {
      sum += tile[j];  // want: uninitialized-read
    }
    y[at.y] = sum;
  }
}

kernel void uninitialized_padding_fixed(
    device const float* x [[buffer(0)]],
    constant uint& width [[buffer(1)]],
    device float* y [[buffer(2)]],
    uint2 at [[thread_position_in_grid]]) {
  threadgroup float tile[64];
  tile[at.x] = at.x < width ? x[at.y * width + at.x] : 0.0f;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (at.x == 0) {
    float sum = 0;
    for (uint j = 0; j < 64; j++) {
      sum += tile[j];
    }
    y[at.y] = sum;
  }
}
