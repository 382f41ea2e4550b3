// Copies an 8×12 matrix in 8×8 tiles. The second tile reaches four columns past the right edge: into the next row,
// and past the last row.
//
// launch: out_of_bounds_matrix_load_bug out_of_bounds_matrix_load_fixed
//   with: grid=64 threadgroup=32 x=float32[8,12] y=out:float32[2,8,8]
#include <metal_stdlib>
using namespace metal;

kernel void out_of_bounds_matrix_load_bug(
    device const float* x [[buffer(0)]],
    device float* y [[buffer(1)]],
    uint tile [[threadgroup_position_in_grid]]) {
  simdgroup_float8x8 m;
  simdgroup_load(m, x + tile * 8, 12);  // want: out-of-bounds
  simdgroup_store(m, y + tile * 64, 8);
}

kernel void out_of_bounds_matrix_load_fixed(
    device const float* x [[buffer(0)]],
    device float* y [[buffer(1)]],
    uint tile [[threadgroup_position_in_grid]]) {
  simdgroup_float8x8 m;
  simdgroup_load(m, x + tile * 4, 12);
  simdgroup_store(m, y + tile * 64, 8);
}
