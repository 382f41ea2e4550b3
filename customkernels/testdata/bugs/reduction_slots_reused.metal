// Two reductions in a row through the same slots. A simdgroup that runs ahead overwrites its slot while another
// still reads the first value (write after read).
//
// launch: reduction_slots_reused_bug reduction_slots_reused_fixed
//   with: grid=128 threadgroup=64 x=float32[128] least=out:float32[2] greatest=out:float32[2]
#include <metal_stdlib>
using namespace metal;

kernel void reduction_slots_reused_bug(
    device const float* x [[buffer(0)]],
    device float* least [[buffer(1)]],
    device float* greatest [[buffer(2)]],
    uint i [[thread_position_in_grid]],
    uint group [[threadgroup_position_in_grid]],
    uint lane [[thread_index_in_simdgroup]],
    uint simdgroup [[simdgroup_index_in_threadgroup]]) {
  threadgroup float slots[2];
  const float low = simd_min(x[i]);
  if (lane == 0) {
    slots[simdgroup] = low;
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  // Only lane 0 reads.
  if (lane == 0) {
    const float all = min(slots[0], slots[1]);  // also: race
    if (simdgroup == 0) {
      least[group] = all;
    }
  }
  const float high = simd_max(x[i]);
  if (lane == 0) {
    slots[simdgroup] = high;  // want: race
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (lane == 0 && simdgroup == 0) {
    greatest[group] = max(slots[0], slots[1]);
  }
}

kernel void reduction_slots_reused_fixed(
    device const float* x [[buffer(0)]],
    device float* least [[buffer(1)]],
    device float* greatest [[buffer(2)]],
    uint i [[thread_position_in_grid]],
    uint group [[threadgroup_position_in_grid]],
    uint lane [[thread_index_in_simdgroup]],
    uint simdgroup [[simdgroup_index_in_threadgroup]]) {
  threadgroup float slots[2];
  const float low = simd_min(x[i]);
  if (lane == 0) {
    slots[simdgroup] = low;
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (lane == 0) {
    const float all = min(slots[0], slots[1]);
    if (simdgroup == 0) {
      least[group] = all;
    }
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  const float high = simd_max(x[i]);
  if (lane == 0) {
    slots[simdgroup] = high;
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (lane == 0 && simdgroup == 0) {
    greatest[group] = max(slots[0], slots[1]);
  }
}
