#include <metal_stdlib>
using namespace metal;

constant bool negate [[function_constant(0)]];
constant float factor [[function_constant(1)]];

// y = ±factor·(sum of the threadgroup's x). The program sets the size of the
// threadgroup argument.
kernel void group_sum(
    device const float* x [[buffer(0)]],
    device float* y [[buffer(1)]],
    threadgroup float* shared [[threadgroup(0)]],
    uint i [[thread_position_in_grid]],
    uint t [[thread_position_in_threadgroup]],
    uint group [[threadgroup_position_in_grid]],
    uint threads [[threads_per_threadgroup]]) {
  shared[t] = x[i];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (t == 0) {
    float sum = 0;
    for (uint k = 0; k < threads; k++) {
      sum += shared[k];
    }
    y[group] = (negate ? -factor : factor) * sum;
  }
}
