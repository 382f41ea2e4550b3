// Functions shared by transforms and custom functions.
#ifndef MLXG_TRANSFORMS_H
#define MLXG_TRANSFORMS_H

#include "mlx/mlx.h"
#include "mlxg_internal.h"

namespace mlxg {

// stream_of returns the stream of the node that computes an array, or the current stream for an array without one.
mlx::core::Stream stream_of(const mlx::core::array& a);

// distinct_outputs copies outputs where necessary, so that each output is a separate node and receives a cotangent. MLX
// 0.32.2 gives no cotangent to the result of stop_gradient and only one to an array that is listed twice, and then
// pairs cotangents with the wrong outputs.
arrays distinct_outputs(arrays outputs);

}  // namespace mlxg

#endif
