// The first threadgroup waits for a flag of the last one. A GPU may run any number of threadgroups at a time, so
// the last one may never start.
//
// launch: waits_for_other_group_bug waits_for_other_group_fixed
//   with: init=0 grid=64 threadgroup=32 x=uint32[64] flag=out:uint32[1] y=out:uint32[64]
#include <metal_stdlib>
using namespace metal;

kernel void waits_for_other_group_bug(
    device const uint* x [[buffer(0)]],
    device atomic_uint* flag [[buffer(1)]],
    device uint* y [[buffer(2)]],
    uint i [[thread_position_in_grid]]) {
  if (i == 63) {
    atomic_store_explicit(flag, 1u, memory_order_relaxed);
  }
  if (i == 0) {
    while (atomic_load_explicit(flag, memory_order_relaxed) == 0) {  // want: deadlock
    }
  }
  y[i] = x[i];
}

kernel void waits_for_other_group_fixed(
    device const uint* x [[buffer(0)]],
    device atomic_uint* flag [[buffer(1)]],
    device uint* y [[buffer(2)]],
    uint i [[thread_position_in_grid]]) {
  if (i == 63) {
    atomic_store_explicit(flag, 1u, memory_order_relaxed);
  }
  y[i] = x[i];
}
