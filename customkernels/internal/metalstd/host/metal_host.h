// Metal's standard library for the CPU.
//
// A translation unit includes this file first. The shader follows, without its address spaces and attributes. At the
// end the unit defines mlxg_invoke, which calls the kernel for one thread, and mlxgrad_entry.
#ifndef METAL_HOST_H
#define METAL_HOST_H

#include "metal_arguments.h"
#include "metal_atomic.h"
#include "metal_convert.h"
#include "metal_internals.h"
#include "metal_math.h"
#include "metal_matrix.h"
#include "metal_simd.h"
#include "metal_tile.h"
#include "metal_tile_exp.h"

namespace mlxg {
// The type to which package translate converts one of the two values of a conditional operator. A is the type of this
// value, B the type of the other. The result is their common type if both are scalars or vectors and the types differ,
// and A otherwise.
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
  void (*invoke)(void* const* buffers, const thread_position&);
};
}  // namespace mlxg

// Defined at the end of the translation unit. It is declared here so that it can be inlined into the loop below.
namespace {
#ifdef MLXG_CHECKED
// g++ instruments the copies of structures passed by value only in inlined functions.
[[gnu::flatten]]
#endif
void mlxg_invoke(void* const* buffers, const mlxg::thread_position& p);
}  // namespace
extern "C" {
extern const mlxg::entry mlxgrad_entry __attribute__((visibility("default")));
#ifndef MLXG_CHECKED
extern const mlxg::module mlxgrad_module __attribute__((visibility("default")));
#endif
}

#ifndef MLXG_CHECKED  // the checker's worker calls mlxgrad_entry alone
namespace mlxg {
namespace {
// Runs threadgroups first to last - 1 of a kernel without synchronization, one thread after another.
void run_plain(void* const* buffers, const geometry* geo, uint64_t first, uint64_t last) {
  // Local copies let the compiler keep the pointers in registers during the loop.
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
    const metal::uint3 size = metal::min(full, grid - at * full);
    uint32_t index = 0;
    for (uint32_t z = 0; z < size.z; ++z) {
      for (uint32_t y = 0; y < size.y; ++y) {
        for (uint32_t x = 0; x < size.x; ++x, ++index) {
          const thread_position p = position_of(g, at, size, metal::uint3(x, y, z), index);
          mlxg_invoke(b, p);
        }
      }
    }
  }
}
}  // namespace
}  // namespace mlxg

extern "C" const mlxg::module mlxgrad_module = {
    &mlxg::library_threadgroup_memory, &mlxg::library_uses_fibers, mlxg::run_plain};
#endif

using namespace metal;

#ifndef MLXG_NO_MLX_PRELUDE
#include "mlx_prelude.h"
#endif

// Words of C++ that Metal does not have. They are errors in the rest of the translation unit, which is the shader.
#pragma GCC poison double goto new throw try catch virtual thread_local dynamic_cast typeid asm

#endif
