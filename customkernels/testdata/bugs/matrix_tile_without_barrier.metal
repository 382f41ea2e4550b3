// One simdgroup stores a matrix to threadgroup memory, and the other loads its transpose. Matrix loads and stores
// order nothing.
//
// launch: matrix_tile_without_barrier_bug matrix_tile_without_barrier_fixed
//   with: grid=64 threadgroup=64 x=float32[2,8,8] y=out:float32[2,8,8]
#include <metal_stdlib>
using namespace metal;

kernel void matrix_tile_without_barrier_bug(
    device const float* x [[buffer(0)]],
    device float* y [[buffer(1)]],
    uint simdgroup [[simdgroup_index_in_threadgroup]]) {
  threadgroup float tiles[2][64];
  simdgroup_float8x8 m;
  simdgroup_load(m, x + simdgroup * 64, 8);
  simdgroup_store(m, tiles[simdgroup], 8);  // also: race
  simdgroup_load(m, tiles[1 - simdgroup], 8, ulong2(0, 0), true);  // want: race
  simdgroup_store(m, y + simdgroup * 64, 8);
}

kernel void matrix_tile_without_barrier_fixed(
    device const float* x [[buffer(0)]],
    device float* y [[buffer(1)]],
    uint simdgroup [[simdgroup_index_in_threadgroup]]) {
  threadgroup float tiles[2][64];
  simdgroup_float8x8 m;
  simdgroup_load(m, x + simdgroup * 64, 8);
  simdgroup_store(m, tiles[simdgroup], 8);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  simdgroup_load(m, tiles[1 - simdgroup], 8, ulong2(0, 0), true);
  simdgroup_store(m, y + simdgroup * 64, 8);
}
