// What a Metal shader sees when it is compiled for the CPU.
//
// A translation unit includes this file first, then holds the shader without
// its address spaces and attributes, and defines mlxg_invoke, which calls the
// kernel for one thread, and mlxgrad_entry.
#ifndef METAL_HOST_H
#define METAL_HOST_H

#include "metal_atomic.h"
#include "metal_math.h"
#include "metal_matrix.h"
#include "metal_simd.h"

namespace mlxg {
// The type that a value of type A becomes in a conditional operator whose other value is a B. What
// takes part in MSL as a number or a vector, and here is a class, becomes what the two have in
// common; everything else stays.
template <class A, class B, class = void>
struct common_operand_type {
  using type = A;
};
template <class A, class B>
constexpr bool same_value = metal::is_same_v<metal::remove_cvref_t<A>, metal::remove_cvref_t<B>>;
template <class A, class B>
struct common_operand_type<A, B, metal::enable_if_t<(metal::detail::widest<A, B>::n > 0) && !same_value<A, B>>> {
  using type = metal::detail::result_of<A, B>;
};
template <class A, class B>
using common_operand = typename common_operand_type<A, B>::type;

using thread_position = thread_position_of<metal::uint3>;
static_assert(sizeof(metal::uint3) == 16 && alignof(metal::uint3) == 16);

struct entry {
  const char* name;
  uint32_t buffers;
  uint32_t uses_fibers;
  void (*invoke)(void* const* buffers, const thread_position&);
};
}  // namespace mlxg

// Defined at the end of the translation unit, and declared here so that the
// loop below and the kernel become one function.
namespace {
#ifdef MLXG_CHECKED
// g++ does not look at what a structure passed by value is read from; of a function that is inlined it does.
[[gnu::flatten]]
#endif
void mlxg_invoke(void* const* buffers, const mlxg::thread_position& p);
}  // namespace
extern "C" {
extern const mlxg::entry mlxgrad_entry __attribute__((visibility("default")));
extern const mlxg::module mlxgrad_module __attribute__((visibility("default")));
}

namespace mlxg {
namespace {
// Runs whole threadgroups of a kernel whose threads never wait for each other,
// thread after thread.
void run_plain(void* const* buffers, const geometry* geo, uint64_t first, uint64_t last) {
  // Copies that nobody else can change let the compiler keep the pointers in
  // registers over the loop.
  void* b[max_buffers];
  for (unsigned i = 0; i < max_buffers; ++i) {
    b[i] = buffers[i];
  }
  const geometry g = *geo;

  for (uint64_t group = first; group < last; ++group) {
    const metal::uint3 at(
        uint32_t(group % g.groups[0]), uint32_t(group / g.groups[0] % g.groups[1]),
        uint32_t(group / g.groups[0] / g.groups[1]));
    const metal::uint3 full(g.threadgroup[0], g.threadgroup[1], g.threadgroup[2]);
    const metal::uint3 grid(g.grid[0], g.grid[1], g.grid[2]);
    const metal::uint3 origin = at * full;
    const metal::uint3 size = metal::min(full, grid - origin);
    const uint32_t threads = size.x * size.y * size.z;
    const uint32_t all = full.x * full.y * full.z;
    uint32_t index = 0;
    for (uint32_t z = 0; z < size.z; ++z) {
      for (uint32_t y = 0; y < size.y; ++y) {
        for (uint32_t x = 0; x < size.x; ++x, ++index) {
          thread_position p;
          p.thread_position_in_threadgroup = metal::uint3(x, y, z);
          p.thread_position_in_grid = metal::uint3(origin.x + x, origin.y + y, origin.z + z);
          p.threadgroup_position_in_grid = at;
          p.threads_per_threadgroup = size;
          p.dispatch_threads_per_threadgroup = full;
          p.threads_per_grid = grid;
          p.threadgroups_per_grid = metal::uint3(g.groups[0], g.groups[1], g.groups[2]);
          p.grid_size = grid;
          p.grid_origin = metal::uint3(0);
          p.thread_index_in_threadgroup = index;
          p.thread_index_in_simdgroup = index % simd_width;
          p.thread_index_in_quadgroup = index % 4;
          p.simdgroup_index_in_threadgroup = index / simd_width;
          p.quadgroup_index_in_threadgroup = index / 4;
          p.simdgroups_per_threadgroup = (threads + simd_width - 1) / simd_width;
          p.quadgroups_per_threadgroup = (threads + 3) / 4;
          p.dispatch_simdgroups_per_threadgroup = (all + simd_width - 1) / simd_width;
          p.dispatch_quadgroups_per_threadgroup = (all + 3) / 4;
          p.threads_per_simdgroup = simd_width;
          p.thread_execution_width = simd_width;
          mlxg_invoke(b, p);
        }
      }
    }
  }
}
}  // namespace
}  // namespace mlxg

extern "C" const mlxg::module mlxgrad_module = {
    mlxg::abi_version, &mlxg::library_threadgroup_memory, &mlxg::library_uses_fibers, mlxg::run_plain};

using namespace metal;

#ifndef MLXG_NO_MLX_PRELUDE
#include "mlx_prelude.h"
#endif

// C++ that Metal does not have, in a shader from here on.
#pragma GCC poison double goto new throw try catch virtual thread_local dynamic_cast typeid asm

#endif
