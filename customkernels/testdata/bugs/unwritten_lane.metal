// Stores three lanes of each float4. The fourth lane of every element stays undefined.
//
// launch: unwritten_lane_bug unwritten_lane_fixed
//   with: grid=16 threadgroup=16 x=float32[64] y=out:float32[64]
#include <metal_stdlib>
using namespace metal;

kernel void unwritten_lane_bug(  // want: unwritten-output
    device const float4* x [[buffer(0)]],
    device float4* y [[buffer(1)]],
    uint i [[thread_position_in_grid]]) {
  y[i].xyz = x[i].xyz + x[i].xyz;
}

kernel void unwritten_lane_fixed(
    device const float4* x [[buffer(0)]],
    device float4* y [[buffer(1)]],
    uint i [[thread_position_in_grid]]) {
  y[i] = x[i] + x[i];
}
