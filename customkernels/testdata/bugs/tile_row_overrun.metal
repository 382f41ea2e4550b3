// Reads the right neighbor in rows of eight elements. The last element of a row reads the first of the next row,
// in the same array.
//
// launch: tile_row_overrun_bug tile_row_overrun_fixed
//   with: grid=64 threadgroup=64 x=float32[72] y=out:float32[64]
#include <metal_stdlib>
using namespace metal;

kernel void tile_row_overrun_bug(
    device const float* x [[buffer(0)]],
    device float* y [[buffer(1)]],
    uint i [[thread_position_in_threadgroup]]) {
  threadgroup float tile[9][8];
  tile[i / 8][i % 8] = x[i];
  if (i < 8) {
    tile[8][i] = x[64 + i];
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  y[i] = tile[i / 8][i % 8 + 1] + tile[i / 8 + 1][i % 8];  // want: out-of-bounds
}

kernel void tile_row_overrun_fixed(
    device const float* x [[buffer(0)]],
    device float* y [[buffer(1)]],
    uint i [[thread_position_in_threadgroup]]) {
  threadgroup float tile[9][8];
  tile[i / 8][i % 8] = x[i];
  if (i < 8) {
    tile[8][i] = x[64 + i];
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  y[i] = tile[i / 8][(i + 1) % 8] + tile[i / 8 + 1][i % 8];
}
