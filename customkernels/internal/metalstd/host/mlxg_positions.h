// The positions of a thread, as Metal's attributes of kernel arguments name them.
#ifndef MLXG_POSITIONS_H
#define MLXG_POSITIONS_H

#include <stdint.h>

namespace mlxg {

constexpr unsigned simd_width = 32;

// The sizes of a launch.
struct geometry {
  uint32_t grid[3];         // threads
  uint32_t threadgroup[3];  // threads of a full threadgroup
  uint32_t groups[3];       // threadgroups, including smaller ones at the ends of axes
};

// All values that Metal can bind to an attribute of a kernel argument. V3 is metal::uint3 in a shader, and a structure
// of the same layout elsewhere.
template <class V3>
struct thread_position_of {
  V3 thread_position_in_grid;
  V3 thread_position_in_threadgroup;
  V3 threadgroup_position_in_grid;
  V3 threads_per_threadgroup;  // of this threadgroup, which may be smaller than a full one
  V3 dispatch_threads_per_threadgroup;
  V3 threads_per_grid;
  V3 threadgroups_per_grid;
  V3 grid_size;
  V3 grid_origin;
  uint32_t thread_index_in_threadgroup;
  uint32_t thread_index_in_simdgroup;
  uint32_t thread_index_in_quadgroup;
  uint32_t simdgroup_index_in_threadgroup;
  uint32_t quadgroup_index_in_threadgroup;
  uint32_t simdgroups_per_threadgroup;
  uint32_t quadgroups_per_threadgroup;
  uint32_t dispatch_simdgroups_per_threadgroup;
  uint32_t dispatch_quadgroups_per_threadgroup;
  uint32_t threads_per_simdgroup;
  uint32_t thread_execution_width;
};

// Returns the positions of a thread. It is at `in` and has the number `index` in the threadgroup at `at`, which has
// `size` threads.
template <class V3>
[[gnu::always_inline]] inline thread_position_of<V3> position_of(
    const geometry& g, const V3& at, const V3& size, const V3& in, uint32_t index) {
  const uint32_t threads = size.x * size.y * size.z;
  const uint32_t full = g.threadgroup[0] * g.threadgroup[1] * g.threadgroup[2];
  thread_position_of<V3> p;
  p.thread_position_in_grid =
      V3{at.x * g.threadgroup[0] + in.x, at.y * g.threadgroup[1] + in.y, at.z * g.threadgroup[2] + in.z};
  p.thread_position_in_threadgroup = in;
  p.threadgroup_position_in_grid = at;
  p.threads_per_threadgroup = size;
  p.dispatch_threads_per_threadgroup = V3{g.threadgroup[0], g.threadgroup[1], g.threadgroup[2]};
  p.threads_per_grid = V3{g.grid[0], g.grid[1], g.grid[2]};
  p.threadgroups_per_grid = V3{g.groups[0], g.groups[1], g.groups[2]};
  p.grid_size = p.threads_per_grid;
  p.grid_origin = V3{0u, 0u, 0u};
  p.thread_index_in_threadgroup = index;
  p.thread_index_in_simdgroup = index % simd_width;
  p.thread_index_in_quadgroup = index % 4;
  p.simdgroup_index_in_threadgroup = index / simd_width;
  p.quadgroup_index_in_threadgroup = index / 4;
  p.simdgroups_per_threadgroup = (threads + simd_width - 1) / simd_width;
  p.quadgroups_per_threadgroup = (threads + 3) / 4;
  p.dispatch_simdgroups_per_threadgroup = (full + simd_width - 1) / simd_width;
  p.dispatch_quadgroups_per_threadgroup = (full + 3) / 4;
  p.threads_per_simdgroup = simd_width;
  p.thread_execution_width = simd_width;
  return p;
}

}  // namespace mlxg

#endif
