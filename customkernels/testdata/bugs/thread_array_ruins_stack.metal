// Fills a thread's own array of eight with a number of elements from the input, which is greater. The writes
// overwrite the thread's stack.
//
// launch: thread_array_ruins_stack_bug thread_array_ruins_stack_fixed
//   with: grid=4 threadgroup=4 n=uint32[4]:8,4,8,64 y=out:float32[4]
#include <metal_stdlib>
using namespace metal;

kernel void thread_array_ruins_stack_bug(
    device const uint* n [[buffer(0)]],
    device float* y [[buffer(1)]],
    uint i [[thread_position_in_grid]]) {
  float v[8] = {};
  for (uint j = 0; j < n[i]; j++) {
    v[j] = j;  // want: out-of-bounds
  }
  float sum = 0;
  for (uint j = 0; j < 8; j++) {
    sum += v[j];
  }
  y[i] = sum;
}

kernel void thread_array_ruins_stack_fixed(
    device const uint* n [[buffer(0)]],
    device float* y [[buffer(1)]],
    uint i [[thread_position_in_grid]]) {
  float v[8] = {};
  for (uint j = 0; j < min(n[i], 8u); j++) {
    v[j] = j;
  }
  float sum = 0;
  for (uint j = 0; j < 8; j++) {
    sum += v[j];
  }
  y[i] = sum;
}
