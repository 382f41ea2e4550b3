// Launches of compiled CUDA code.
#ifndef MLXG_MODULE_H
#define MLXG_MODULE_H

#include <string>

#include "mlx/fast.h"

namespace mlxg {

// compiled_kernel returns the launcher of a function in code, which is a cubin or PTX. The launcher passes its
// template arguments, which must be of type int, after the outputs. If aligned, launches read copies of inputs that do
// not begin at a multiple of 16 bytes in their buffers.
mlx::core::fast::CustomKernelFunction compiled_kernel(
    std::string function, std::string code, bool contiguous, bool aligned, int shared_memory);

}  // namespace mlxg

#endif
