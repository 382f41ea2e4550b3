// Launches of compiled CUDA code. MLX's launches of such code hash it and look up its module each time, and cannot
// start before the end of other kernels.
#ifndef MLXG_LAUNCH_H
#define MLXG_LAUNCH_H

#include <compare>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "mlx/fast.h"
#include "mlx/primitives.h"

namespace mlxg {

// A compiled_kernel is a function of a cubin or of PTX.
struct compiled_kernel {
  std::string function, code;
  bool contiguous;  // launches read copies of inputs that are not in row-major order
  bool aligned;     // launches read copies of inputs that do not begin at a multiple of 16 bytes in their buffers
  bool early;       // launches may start before the end of the kernels that write their inputs
  int shared_memory;

  auto operator<=>(const compiled_kernel&) const = default;
};

// launcher_of returns a function that adds launches to a graph. They pass their template arguments, which must be of
// type int, after the outputs. It returns null for an aligned kernel unless cuda::api() is complete.
mlx::core::fast::CustomKernelFunction launcher_of(const compiled_kernel& k);

// pair_of returns a node that runs two launches, of which the second may start before the end of the first, or null if
// this is not possible. Its inputs begin with the `inputs` inputs of the first launch, and its outputs with the
// `outputs` outputs. Input i of the second launch is output places[i] of the node if places[i] < outputs, and else
// input places[i] − outputs.
std::shared_ptr<mlx::core::Primitive> pair_of(
    const std::shared_ptr<mlx::core::Primitive>& first,
    const std::shared_ptr<mlx::core::Primitive>& second,
    size_t inputs,
    size_t outputs,
    std::vector<size_t> places);

}  // namespace mlxg

#endif
