// Reads the fifth element of a thread's own array of four. The address lies within the thread's own memory.
//
// launch: thread_array_overrun_bug thread_array_overrun_fixed
//   with: grid=64 threadgroup=64 x=uint32[64]:iota y=out:float32[64]
#include <metal_stdlib>
using namespace metal;

kernel void thread_array_overrun_bug(
    device const uint* x [[buffer(0)]],
    device float* y [[buffer(1)]],
    uint i [[thread_position_in_grid]]) {
  const float v[4] = {1, 2, 3, 4};
  y[i] = v[x[i] % 5];  // want: out-of-bounds
}

kernel void thread_array_overrun_fixed(
    device const uint* x [[buffer(0)]],
    device float* y [[buffer(1)]],
    uint i [[thread_position_in_grid]]) {
  const float v[4] = {1, 2, 3, 4};
  y[i] = v[x[i] % 4];
}
