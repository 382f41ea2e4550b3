// Metal's standard library for NVIDIA GPUs: the library of the host executor, with CUDA's own instructions for lanes,
// memory and arithmetic.
#ifndef METAL_CUDA_H
#define METAL_CUDA_H

#include "metal_atomic.h"
#include "metal_math.h"
#include "metal_matrix.h"
#include "metal_simd.h"
#include "metal_tiles.h"
#include "metal_warpgroup.h"
#include "metal_warpgroup_tf32.h"
#include "mlx_prelude.h"

namespace mlxg {

// The positions of the running thread, in a launch with threadgroups of x·y·z threads. The sizes are template
// parameters, so that values derived from them are constants. If `whole`, the threadgroups are full. Otherwise the
// constructor takes the grid, and blocks at the ends of axes have threads that Metal would not run.
template <unsigned x, unsigned y, unsigned z, bool whole>
struct thread_position {
  metal::uint3 grid;

  MLXG_INLINE thread_position() : grid(gridDim.x * x, gridDim.y * y, gridDim.z * z) {}
  MLXG_INLINE explicit thread_position(const uint32_t* threads) : grid(threads[0], threads[1], threads[2]) {}

  // Returns whether Metal would run this thread.
  MLXG_INLINE bool exists() const {
    const metal::uint3 p = thread_position_in_grid();
    return whole || (p.x < grid.x && p.y < grid.y && p.z < grid.z);
  }
  MLXG_INLINE metal::uint3 threads_per_grid() const { return grid; }
  MLXG_INLINE metal::uint3 thread_position_in_threadgroup() const {
    return metal::uint3(x > 1 ? threadIdx.x : 0, y > 1 ? threadIdx.y : 0, z > 1 ? threadIdx.z : 0);
  }
  MLXG_INLINE metal::uint3 threadgroup_position_in_grid() const {
    return metal::uint3(blockIdx.x, blockIdx.y, blockIdx.z);
  }
  MLXG_INLINE metal::uint3 dispatch_threads_per_threadgroup() const { return metal::uint3(x, y, z); }
  MLXG_INLINE metal::uint3 thread_position_in_grid() const {
    return threadgroup_position_in_grid() * dispatch_threads_per_threadgroup() + thread_position_in_threadgroup();
  }
  // The size of this threadgroup. The last one of an axis may be smaller.
  MLXG_INLINE metal::uint3 threads_per_threadgroup() const {
    const metal::uint3 full = dispatch_threads_per_threadgroup();
    return whole ? full : metal::min(full, grid - threadgroup_position_in_grid() * full);
  }
  MLXG_INLINE metal::uint3 threadgroups_per_grid() const { return metal::uint3(gridDim.x, gridDim.y, gridDim.z); }
  MLXG_INLINE metal::uint3 grid_size() const { return grid; }
  MLXG_INLINE metal::uint3 grid_origin() const { return metal::uint3(0); }
  MLXG_INLINE uint32_t thread_index_in_threadgroup() const {
    const metal::uint3 size = threads_per_threadgroup(), p = thread_position_in_threadgroup();
    return (p.z * size.y + p.y) * size.x + p.x;
  }
  MLXG_INLINE uint32_t thread_index_in_simdgroup() const { return thread_index_in_threadgroup() % simd_width; }
  MLXG_INLINE uint32_t thread_index_in_quadgroup() const { return thread_index_in_threadgroup() % 4; }
  MLXG_INLINE uint32_t simdgroup_index_in_threadgroup() const { return thread_index_in_threadgroup() / simd_width; }
  MLXG_INLINE uint32_t quadgroup_index_in_threadgroup() const { return thread_index_in_threadgroup() / 4; }
  MLXG_INLINE uint32_t simdgroups_per_threadgroup() const { return groups(threads_per_threadgroup(), simd_width); }
  MLXG_INLINE uint32_t quadgroups_per_threadgroup() const { return groups(threads_per_threadgroup(), 4); }
  MLXG_INLINE uint32_t dispatch_simdgroups_per_threadgroup() const {
    return groups(dispatch_threads_per_threadgroup(), simd_width);
  }
  MLXG_INLINE uint32_t dispatch_quadgroups_per_threadgroup() const {
    return groups(dispatch_threads_per_threadgroup(), 4);
  }
  MLXG_INLINE uint32_t threads_per_simdgroup() const { return simd_width; }
  MLXG_INLINE uint32_t thread_execution_width() const { return simd_width; }

 private:
  MLXG_INLINE static uint32_t groups(metal::uint3 size, uint32_t width) {
    return (size.x * size.y * size.z + width - 1) / width;
  }
};

}  // namespace mlxg

#endif
