// Rotates points about an axis with a thread's own matrices.
//
//   y[i] = R · x[i],   R = cos φ·I + sin φ·[u]× + (1 − cos φ)·u·uᵀ
//
// and returns det R, which is 1. Points are packed_float3.
//
// Launch: one thread per point.

#include <metal_stdlib>
using namespace metal;

inline float3x3 rotation(float3 u, float angle) {
  float c;
  const float s = sincos(angle, c);
  const float3x3 cross_u = float3x3(
      float3(0, u.z, -u.y), float3(-u.z, 0, u.x), float3(u.y, -u.x, 0));
  const float3x3 outer = float3x3(u * u.x, u * u.y, u * u.z);
  return float3x3(c) + s * cross_u + (1 - c) * outer;
}

kernel void rotate_points(
    device const packed_float3* x [[buffer(0)]],
    constant float& angle [[buffer(1)]],
    device packed_float3* y [[buffer(2)]],
    device float* volume [[buffer(3)]],
    uint i [[thread_position_in_grid]]) {
  const float3 axis = normalize(float3(1, 2, 2));
  const float3x3 r = rotation(axis, angle);
  y[i] = packed_float3(r * float3(x[i]));
  volume[i] = determinant(transpose(r) * r);
}
