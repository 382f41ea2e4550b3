// The index is a signed product that does not fit an int. It wraps around on a GPU, and the compiler may assume
// that it does not.
//
// launch: index_overflow_bug index_overflow_fixed
//   with: grid=64 threadgroup=64 x=float32[64] stride=int32:536870913 y=out:float32[64]
#include <metal_stdlib>
using namespace metal;

kernel void index_overflow_bug(
    device const float* x [[buffer(0)]],
    constant int& stride [[buffer(1)]],
    device float* y [[buffer(2)]],
    uint i [[thread_position_in_grid]]) {
  const int at = int(i) * stride;  // want: overflow
  y[i] = x[at & 63];
}

kernel void index_overflow_fixed(
    device const float* x [[buffer(0)]],
    constant int& stride [[buffer(1)]],
    device float* y [[buffer(2)]],
    uint i [[thread_position_in_grid]]) {
  const long at = long(i) * stride;
  y[i] = x[at & 63];
}
