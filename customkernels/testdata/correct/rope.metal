// Rotary position embedding.
//
//   (y_i, y_{i+D/2}) = R(p·θ_i) · (x_i, x_{i+D/2}),   θ_i = base^(−2i/D),   i < D/2
//
// for the position p = offset + l of row l. R rotates by its argument. With `interleaved` the pairs are (2i, 2i + 1).
//
// Launch: one thread per pair; grid (D/2, length, batch·heads).

#include <metal_stdlib>
using namespace metal;

inline float2 turned(float2 v, float angle) {
  float c;
  const float s = sincos(angle, c);
  return float2(v.x * c - v.y * s, v.x * s + v.y * c);
}

template <typename T, bool interleaved>
[[kernel]] void rope(
    device const T* x [[buffer(0)]],
    constant float& log2_base [[buffer(1)]],
    constant int& offset [[buffer(2)]],
    device T* y [[buffer(3)]],
    uint3 at [[thread_position_in_grid]],
    uint3 grid [[threads_per_grid]]) {
  const uint pairs = grid.x;
  const ulong row = (ulong(at.z) * grid.y + at.y) * (2 * pairs);
  const ulong first = row + (interleaved ? 2 * at.x : at.x);
  const ulong second = interleaved ? first + 1 : first + pairs;
  const float theta = exp2(-log2_base * float(at.x) / float(pairs));
  const float2 v = turned(float2(float(x[first]), float(x[second])), float(int(at.y) + offset) * theta);
  y[first] = T(v.x);
  y[second] = T(v.y);
}
