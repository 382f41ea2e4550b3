// The last threadgroup to increment a counter adds up the partial sums of all. The scope of the fences is the
// threadgroup only.
//
// launch: fence_of_narrow_scope_bug fence_of_narrow_scope_fixed
//   with: init=0 grid=128 threadgroup=32 x=float32[128] parts=out:float32[4]
//   with: count=out:uint32[1] y=out:float32[1]
#include <metal_stdlib>
using namespace metal;

kernel void fence_of_narrow_scope_bug(
    device const float* x [[buffer(0)]],
    device float* parts [[buffer(1)]],
    device atomic_uint* count [[buffer(2)]],
    device float* y [[buffer(3)]],
    uint i [[thread_position_in_grid]],
    uint group [[threadgroup_position_in_grid]],
    uint groups [[threadgroups_per_grid]],
    uint lane [[thread_index_in_simdgroup]]) {
  const float part = simd_sum(x[i]);
  if (lane > 0) {
    return;
  }
  parts[group] = part;  // also: race
  atomic_thread_fence(mem_flags::mem_device, memory_order_seq_cst, thread_scope_threadgroup);
  if (atomic_fetch_add_explicit(count, 1u, memory_order_relaxed) == groups - 1) {
    atomic_thread_fence(mem_flags::mem_device, memory_order_seq_cst, thread_scope_threadgroup);
    float sum = 0;
    for (uint g = 0; g < groups; g++) {
      sum += parts[g];  // want: race
    }
    y[0] = sum;
  }
}

kernel void fence_of_narrow_scope_fixed(
    device const float* x [[buffer(0)]],
    device float* parts [[buffer(1)]],
    device atomic_uint* count [[buffer(2)]],
    device float* y [[buffer(3)]],
    uint i [[thread_position_in_grid]],
    uint group [[threadgroup_position_in_grid]],
    uint groups [[threadgroups_per_grid]],
    uint lane [[thread_index_in_simdgroup]]) {
  const float part = simd_sum(x[i]);
  if (lane > 0) {
    return;
  }
  parts[group] = part;
  atomic_thread_fence(mem_flags::mem_device, memory_order_seq_cst, thread_scope_device);
  if (atomic_fetch_add_explicit(count, 1u, memory_order_relaxed) == groups - 1) {
    atomic_thread_fence(mem_flags::mem_device, memory_order_seq_cst, thread_scope_device);
    float sum = 0;
    for (uint g = 0; g < groups; g++) {
      sum += parts[g];
    }
    y[0] = sum;
  }
}
