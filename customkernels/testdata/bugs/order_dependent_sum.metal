// A row sum by atomic additions of floats. The rounding depends on the order of threads.
//
// launch: order_dependent_sum_bug order_dependent_sum_fixed
//   with: grid=64 threadgroup=64 init=0 x=float32[64] y=out:float32[1]
#include <metal_stdlib>
using namespace metal;

kernel void order_dependent_sum_bug(  // want: order-dependent
    device const float* x [[buffer(0)]],
    device atomic_float* y [[buffer(1)]],
    uint i [[thread_position_in_grid]]) {
  atomic_fetch_add_explicit(y, x[i], memory_order_relaxed);
}

kernel void order_dependent_sum_fixed(
    device const float* x [[buffer(0)]],
    device float* y [[buffer(1)]],
    uint i [[thread_position_in_grid]]) {
  if (i == 0) {
    float sum = 0;
    for (uint j = 0; j < 64; j++) {
      sum += x[j];
    }
    y[0] = sum;
  }
}
