// Convolution of a multi-channel image with one 2-D kernel per channel, summed over the channels. Pixels beyond the
// edges equal the nearest pixel.
//
//   y[f, i, j] = Σ_c Σ_{p, q < K} w[f, c, p, q] · x[c, clamp(i + p − K/2), clamp(j + q − K/2)]
//
// Launch: threadgroups of 16×8×1 threads over width × height × filters, with partial ones at the right and lower edges;
// K ≤ 5, odd.

#include <metal_stdlib>
using namespace metal;

template <typename T, int K>
[[kernel]] void conv2d(
    device const T* x [[buffer(0)]],
    device const T* w [[buffer(1)]],
    constant int& channels [[buffer(2)]],
    device T* y [[buffer(3)]],
    uint3 at [[thread_position_in_grid]],
    uint3 in_group [[thread_position_in_threadgroup]],
    uint3 size [[threads_per_threadgroup]],
    uint3 image [[threads_per_grid]]) {
  threadgroup float tile[8 + 4][16 + 4];
  constexpr int border = K / 2;
  const int2 limit = int2(image.xy) - 1;
  const int2 corner = int2(at.xy) - int2(in_group.xy) - border;
  const int tile_width = int(size.x) + 2 * border;
  const int tile_height = int(size.y) + 2 * border;
  float sum = 0;
  for (int c = 0; c < channels; c++) {
    device const T* plane = x + c * int(image.x * image.y);
    for (int i = int(in_group.y); i < tile_height; i += int(size.y)) {
      for (int j = int(in_group.x); j < tile_width; j += int(size.x)) {
        const int2 p = clamp(corner + int2(j, i), int2(0), limit);
        tile[i][j] = float(plane[p.y * int(image.x) + p.x]);
      }
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    device const T* weights = w + (int(at.z) * channels + c) * K * K;
#pragma unroll
    for (int p = 0; p < K; p++) {
#pragma unroll
      for (int q = 0; q < K; q++) {
        sum += float(weights[p * K + q]) * tile[int(in_group.y) + p][int(in_group.x) + q];
      }
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
  y[(at.z * image.y + at.y) * image.x + at.x] = T(sum);
}
