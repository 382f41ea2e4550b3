// Threads with a positive value call the function at one place, and the others at another place. Metal does not define
// a barrier that some threads reach in one call and some in the other.
//
// launch: barrier_in_helper_of_branches_bug barrier_in_helper_of_branches_fixed
//   with: grid=64 threadgroup=64 x=float32[64] y=out:float32[64]
#include <metal_stdlib>
using namespace metal;

float mirrored(threadgroup float* tile, uint i, float v) {
  tile[i] = v;
  threadgroup_barrier(mem_flags::mem_threadgroup);  // want: divergent-barrier
  return tile[63 - i];
}

kernel void barrier_in_helper_of_branches_bug(
    device const float* x [[buffer(0)]], device float* y [[buffer(1)]], uint i [[thread_position_in_grid]]) {
  threadgroup float tile[64];
  y[i] = x[i] > 0 ? mirrored(tile, i, x[i]) : mirrored(tile, i, 0.0f);  // path: divergent-barrier
}

kernel void barrier_in_helper_of_branches_fixed(
    device const float* x [[buffer(0)]], device float* y [[buffer(1)]], uint i [[thread_position_in_grid]]) {
  threadgroup float tile[64];
  y[i] = mirrored(tile, i, x[i] > 0 ? x[i] : 0.0f);
}
