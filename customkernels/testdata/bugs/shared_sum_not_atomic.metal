// All simdgroups add to one sum with an ordinary addition. An addition can be lost.
//
// launch: shared_sum_not_atomic_bug grid=128 threadgroup=64
//   with: init=0 x=int32[128] y=out:int32[1]
// launch: shared_sum_not_atomic_fixed grid=128 threadgroup=64
//   with: init=0 x=int32[128] y=out:int32[1]
#include <metal_stdlib>
using namespace metal;

kernel void shared_sum_not_atomic_bug(
    device const int* x [[buffer(0)]],
    device int* y [[buffer(1)]],
    uint i [[thread_position_in_grid]],
    uint lane [[thread_index_in_simdgroup]]) {
  const int sum = simd_sum(x[i]);
  if (lane == 0) {
    y[0] += sum;  // want: race
  }
}

kernel void shared_sum_not_atomic_fixed(
    device const int* x [[buffer(0)]],
    device atomic_int* y [[buffer(1)]],
    uint i [[thread_position_in_grid]],
    uint lane [[thread_index_in_simdgroup]]) {
  const int sum = simd_sum(x[i]);
  if (lane == 0) {
    atomic_fetch_add_explicit(y, sum, memory_order_relaxed);
  }
}
