// An index past the end of an array selects the next member of the same structure, which lies within the variable.
//
// launch: thread_member_overrun_bug thread_member_overrun_fixed
//   with: grid=64 threadgroup=64 x=uint32[64]:iota y=out:float32[64]
#include <metal_stdlib>
using namespace metal;

struct weights {
  float v[4];
  float sum;
};

kernel void thread_member_overrun_bug(
    device const uint* x [[buffer(0)]],
    device float* y [[buffer(1)]],
    uint i [[thread_position_in_grid]]) {
  weights w = {{1, 2, 3, 4}, 10};
  thread const float* p = w.v;
  y[i] = p[x[i] % 5] + 0 * w.sum;  // want: out-of-bounds
}

kernel void thread_member_overrun_fixed(
    device const uint* x [[buffer(0)]],
    device float* y [[buffer(1)]],
    uint i [[thread_position_in_grid]]) {
  weights w = {{1, 2, 3, 4}, 10};
  thread const float* p = w.v;
  y[i] = p[x[i] % 4] + 0 * w.sum;
}
