// The transpose of a matrix through a tile in threadgroup memory.
//
//   y[j, i] = x[i, j]
//
// Both the reads and the writes of a simdgroup are then adjacent in device memory. The tile has a 33rd column, so
// that the elements of a column lie in different banks.
//
// Launch: one threadgroup of 32×8 threads per tile of 32×32; grid (32·⌈columns/32⌉, 8·⌈rows/32⌉).

#include <metal_stdlib>
using namespace metal;

template <typename T>
kernel void transpose_tiles(
    device const T* x [[buffer(0)]],
    constant uint2& size [[buffer(1)]], // columns, rows
    device T* y [[buffer(2)]],
    uint2 lid [[thread_position_in_threadgroup]],
    uint2 group [[threadgroup_position_in_grid]]) {
  threadgroup T tile[32][33];
  uint column = group.x * 32 + lid.x;
  for (uint r = lid.y; r < 32; r += 8) {
    const uint row = group.y * 32 + r;
    if (column < size.x && row < size.y) {
      tile[r][lid.x] = x[row * size.x + column];
    }
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  column = group.y * 32 + lid.x; // of y
  for (uint r = lid.y; r < 32; r += 8) {
    const uint row = group.x * 32 + r; // of y
    if (column < size.y && row < size.x) {
      y[row * size.y + column] = tile[lid.x][r];
    }
  }
}
