// Allocation of array memory. The allocator returns a Buffer up to MLX 0.32.3, and from 0.32.4 on a Data, which frees
// itself.
#pragma once

#include <stdexcept>
#include <string>
#include <utility>

#include "mlx/allocator.h"
#include "mlx/array.h"
#include "mlx/version.h"

namespace mlxg {

// new_memory allocates size bytes. The result is an argument of array::set_data. If the system is out of memory, MLX's
// CPU allocator returns a null buffer; new_memory throws an error that names subject.
inline auto new_memory(size_t size, const char* subject) {
  auto memory = mlx::core::allocator::malloc(size);
#if MLX_VERSION_NUMERIC >= 32004
  bool ok = memory.buffer().ptr();
#else
  bool ok = memory.ptr();
#endif
  if (!ok && size > 0) {
    throw std::runtime_error(std::string("out of memory: ") + subject + " takes " + std::to_string(size) + " bytes");
  }
  return memory;
}

// set_foreign sets the data of an array to b plus an offset in bytes. The array calls free(b) when its data is
// released.
template <typename Free>
void set_foreign(
    mlx::core::array& a, mlx::core::allocator::Buffer b, int64_t offset, mlx::core::array::Flags flags, Free free) {
#if MLX_VERSION_NUMERIC >= 32004
  a.set_data({b, std::move(free)}, a.size(), a.strides(), flags, offset);
#else
  a.set_data(b, a.size(), a.strides(), flags, offset, std::move(free));
#endif
}

}  // namespace mlxg
