// A threadgroup of 2048 threads. The limit is 1024.
//
// launch: too_many_threads_bug grid=2048 threadgroup=2048 x=float32[2048] y=out:float32[2048]
// launch: too_many_threads_fixed grid=2048 threadgroup=1024 x=float32[2048] y=out:float32[2048]
#include <metal_stdlib>
using namespace metal;

kernel void too_many_threads_bug(  // want: limit
    device const float* x [[buffer(0)]],
    device float* y [[buffer(1)]],
    uint i [[thread_position_in_grid]]) {
  y[i] = 2 * x[i];
}

kernel void too_many_threads_fixed(
    device const float* x [[buffer(0)]],
    device float* y [[buffer(1)]],
    uint i [[thread_position_in_grid]]) {
  y[i] = 2 * x[i];
}
