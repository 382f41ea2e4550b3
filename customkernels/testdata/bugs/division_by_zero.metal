// Integer division with a zero among the divisors. A GPU returns an arbitrary value, a CPU may trap.
//
// launch: division_by_zero_bug division_by_zero_fixed
//   with: grid=32 threadgroup=32 x=int32[32]:iota d=int32[32]:-2..2 y=out:int32[32]
#include <metal_stdlib>
using namespace metal;

kernel void division_by_zero_bug(
    device const int* x [[buffer(0)]],
    device const int* d [[buffer(1)]],
    device int* y [[buffer(2)]],
    uint i [[thread_position_in_grid]]) {
  y[i] = x[i] / d[i];  // want: crash
}

kernel void division_by_zero_fixed(
    device const int* x [[buffer(0)]],
    device const int* d [[buffer(1)]],
    device int* y [[buffer(2)]],
    uint i [[thread_position_in_grid]]) {
  y[i] = d[i] != 0 ? x[i] / d[i] : 0;
}
