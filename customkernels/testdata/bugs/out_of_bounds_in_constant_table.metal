// Reads the fifth element of a table of four in constant memory.
//
// launch: out_of_bounds_in_constant_table_bug out_of_bounds_in_constant_table_fixed
//   with: grid=32 threadgroup=32 index=uint32[32]:iota
//   with: table=float32[4]:10,11,12,13 y=out:float32[32]
#include <metal_stdlib>
using namespace metal;

kernel void out_of_bounds_in_constant_table_bug(
    device const uint* index [[buffer(0)]],
    constant float* table [[buffer(1)]],
    device float* y [[buffer(2)]],
    uint i [[thread_position_in_grid]]) {
  y[i] = table[index[i] % 5];  // want: out-of-bounds
}

kernel void out_of_bounds_in_constant_table_fixed(
    device const uint* index [[buffer(0)]],
    constant float* table [[buffer(1)]],
    device float* y [[buffer(2)]],
    uint i [[thread_position_in_grid]]) {
  y[i] = table[index[i] % 4];
}
