// A step of the heat equation on a box whose surface is zero.
//
//   y = x + a·(Σ of the six neighbors − 6·x)
//
// A threadgroup loads its block with a halo of one cell on all six sides. Blocks at the far ends are partial in each
// direction.
//
// Launch: grid (width, height, depth), threadgroups up to 8×4×4.

#include <metal_stdlib>
using namespace metal;

template <typename T>
[[kernel]] void stencil3d(
    device const T* x [[buffer(0)]],
    constant float& a [[buffer(1)]],
    device T* y [[buffer(2)]],
    uint3 at [[thread_position_in_grid]],
    uint3 in_group [[thread_position_in_threadgroup]],
    uint3 threads [[threads_per_threadgroup]],
    uint3 grid [[threads_per_grid]],
    uint lid [[thread_index_in_threadgroup]]) {
  threadgroup float block[6][6][10];
  const int3 box = int3(grid);
  const int3 corner = int3(at) - int3(in_group) - 1;
  const uint3 extent = threads + 2;
  const uint cells = extent.x * extent.y * extent.z;
  for (uint e = lid; e < cells; e += threads.x * threads.y * threads.z) {
    const uint3 cell = uint3(e % extent.x, e / extent.x % extent.y, e / (extent.x * extent.y));
    const int3 p = corner + int3(cell);
    const bool inside = all(p >= int3(0)) && all(p < box);
    block[cell.z][cell.y][cell.x] = inside ? float(x[(p.z * box.y + p.y) * box.x + p.x]) : 0.0f;
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  const uint3 c = in_group + 1;
  const float here = block[c.z][c.y][c.x];
  const float around = block[c.z - 1][c.y][c.x] + block[c.z + 1][c.y][c.x] +
      block[c.z][c.y - 1][c.x] + block[c.z][c.y + 1][c.x] + block[c.z][c.y][c.x - 1] +
      block[c.z][c.y][c.x + 1];
  y[(at.z * grid.y + at.y) * grid.x + at.x] = T(here + a * (around - 6 * here));
}
