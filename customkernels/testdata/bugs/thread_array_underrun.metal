// Reads the element before a thread's own array through a pointer.
//
// launch: thread_array_underrun_bug thread_array_underrun_fixed
//   with: grid=64 threadgroup=64 x=uint32[64]:iota y=out:float32[64]
#include <metal_stdlib>
using namespace metal;

kernel void thread_array_underrun_bug(
    device const uint* x [[buffer(0)]],
    device float* y [[buffer(1)]],
    uint i [[thread_position_in_grid]]) {
  const float v[4] = {1, 2, 3, 4};
  thread const float* last = v + 3;
  y[i] = last[-int(x[i] % 5)];  // want: out-of-bounds
}

kernel void thread_array_underrun_fixed(
    device const uint* x [[buffer(0)]],
    device float* y [[buffer(1)]],
    uint i [[thread_position_in_grid]]) {
  const float v[4] = {1, 2, 3, 4};
  thread const float* last = v + 3;
  y[i] = last[-int(x[i] % 4)];
}
