// Reads the fifth element of a thread's own array of four through a pointer, whose type has no size.
//
// launch: thread_array_overrun_by_pointer_bug thread_array_overrun_by_pointer_fixed
//   with: grid=64 threadgroup=64 x=uint32[64]:iota y=out:float32[64]
#include <metal_stdlib>
using namespace metal;

inline float at(thread const float* v, uint i) {
  return v[i];  // want: out-of-bounds
}

kernel void thread_array_overrun_by_pointer_bug(
    device const uint* x [[buffer(0)]],
    device float* y [[buffer(1)]],
    uint i [[thread_position_in_grid]]) {
  const float v[4] = {1, 2, 3, 4};
  y[i] = at(v, x[i] % 5);
}

kernel void thread_array_overrun_by_pointer_fixed(
    device const uint* x [[buffer(0)]],
    device float* y [[buffer(1)]],
    uint i [[thread_position_in_grid]]) {
  const float v[4] = {1, 2, 3, 4};
  y[i] = at(v, x[i] % 4);
}
