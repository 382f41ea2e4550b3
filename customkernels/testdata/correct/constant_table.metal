// Reads of constant memory: a table at program scope and a structure from a buffer.

#include <metal_stdlib>
using namespace metal;

// Gauss-Legendre nodes and weights of order 5 on [−1, 1].
struct node {
  float at;
  float weight;
};
constant node nodes[5] = {
    {-0.9061798459386640f, 0.2369268850561891f},
    {-0.5384693101056831f, 0.4786286704993665f},
    {0.0f, 0.5688888888888889f},
    {0.5384693101056831f, 0.4786286704993665f},
    {0.9061798459386640f, 0.2369268850561891f},
};

// y[i] = ∫ cos(t²) dt from 0 to x[i], by Gauss's rule on 16 panels.
//
// Launch: one thread per element.
kernel void fresnel(
    device const float* x [[buffer(0)]],
    device float* y [[buffer(1)]],
    uint i [[thread_position_in_grid]]) {
  constexpr int panels = 16;
  const float half_width = x[i] / (2 * panels);
  float sum = 0;
  for (int p = 0; p < panels; p++) {
    const float middle = (2 * p + 1) * half_width;
    for (constant node& n : nodes) {
      const float t = middle + half_width * n.at;
      sum += n.weight * cos(t * t);
    }
  }
  y[i] = sum * half_width;
}

struct affine_map {
  float4 row0;
  float4 row1;
  packed_float2 lowest;
  float limit;
  int repeat;
};

// y[i] = clamp(A·(x, y, 1, 0) …) for points x[i], applied `repeat` times and clamped to [lowest, limit].
//
// Launch: one thread per point.
kernel void map_points(
    device const float2* x [[buffer(0)]],
    constant affine_map& map [[buffer(1)]],
    device float2* y [[buffer(2)]],
    uint i [[thread_position_in_grid]]) {
  float2 p = x[i];
  for (int r = 0; r < map.repeat; r++) {
    const float4 v = float4(p, 1, 0);
    p = clamp(float2(dot(map.row0, v), dot(map.row1, v)), float2(map.lowest), float2(map.limit));
  }
  y[i] = p;
}
