// The maximum of all elements. The first threadgroup writes without atomics and can overwrite a greater value.
//
// launch: mixed_atomic_and_plain_bug mixed_atomic_and_plain_fixed
//   with: init=0 grid=128 threadgroup=32 x=uint32[128]:1..1000 y=out:uint32[1]
#include <metal_stdlib>
using namespace metal;

kernel void mixed_atomic_and_plain_bug(
    device const uint* x [[buffer(0)]],
    device atomic_uint* y [[buffer(1)]],
    uint i [[thread_position_in_grid]],
    uint lane [[thread_index_in_simdgroup]]) {
  const uint greatest = simd_max(x[i]);
  if (i == 0) {
    device uint* plain = reinterpret_cast<device uint*>(y);
    *plain = max(*plain, greatest);  // want: race
  } else if (lane == 0) {
    atomic_fetch_max_explicit(y, greatest, memory_order_relaxed);  // also: race
  }
}

kernel void mixed_atomic_and_plain_fixed(
    device const uint* x [[buffer(0)]],
    device atomic_uint* y [[buffer(1)]],
    uint i [[thread_position_in_grid]],
    uint lane [[thread_index_in_simdgroup]]) {
  const uint greatest = simd_max(x[i]);
  if (lane == 0) {
    atomic_fetch_max_explicit(y, greatest, memory_order_relaxed);
  }
}
