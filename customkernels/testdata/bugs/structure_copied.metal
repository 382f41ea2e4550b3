// Copies whole structures to and from a tile whose end no thread has filled. The finding is at the line of the
// copy.
//
// launch: structure_copied_bug structure_copied_fixed
//   with: grid=32 threadgroup=32 bodies=float32[20,4]:uniform n=uint32:20 y=out:float32[20]
#include <metal_stdlib>
using namespace metal;

struct body {
  packed_float3 position;
  float mass;
};

kernel void structure_copied_bug(
    device const body* bodies [[buffer(0)]],
    constant uint& n [[buffer(1)]],
    device float* y [[buffer(2)]],
    uint i [[thread_position_in_threadgroup]],
    uint threads [[threads_per_threadgroup]]) {
  threadgroup body tile[32];
  if (i < n) {
    tile[i] = bodies[i];
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (i < n) {
    body nearest = tile[0];
    for (uint j = 1; j < threads; j++) {
      const body other = tile[j];  // want: uninitialized-read
      if (length(other.position - bodies[i].position) * other.mass < nearest.mass) {
        nearest = other;
      }
    }
    y[i] = nearest.mass * length(nearest.position);
  }
}

kernel void structure_copied_fixed(
    device const body* bodies [[buffer(0)]],
    constant uint& n [[buffer(1)]],
    device float* y [[buffer(2)]],
    uint i [[thread_position_in_threadgroup]],
    uint threads [[threads_per_threadgroup]]) {
  threadgroup body tile[32];
  if (i < n) {
    tile[i] = bodies[i];
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (i < n) {
    body nearest = tile[0];
    for (uint j = 1; j < n; j++) {
      const body other = tile[j];
      if (length(other.position - bodies[i].position) * other.mass < nearest.mass) {
        nearest = other;
      }
    }
    y[i] = nearest.mass * length(nearest.position);
  }
}
