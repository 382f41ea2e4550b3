// Functions shared by transforms and custom functions.
#ifndef MLXG_TRANSFORMS_H
#define MLXG_TRANSFORMS_H

#include <functional>

#include "mlx/mlx.h"
#include "mlxg_internal.h"

namespace mlxg {

// stream_of returns the stream of the node that computes an array, or the current stream for an array without one.
mlx::core::Stream stream_of(const mlx::core::array& a);

// distinct_outputs copies outputs where necessary, so that each output is a separate node and receives a cotangent. MLX
// 0.32.2 gives no cotangent to the result of stop_gradient and only one to an array that is listed twice, and then
// pairs cotangents with the wrong outputs.
arrays distinct_outputs(arrays outputs);

using vjp_function = std::function<arrays(const arrays& primals, const arrays& cotangents, const arrays& outputs)>;

// vjp_function_of returns a C++ function that calls the Go function of a vjp rule, or an empty function for the id 0.
vjp_function vjp_function_of(uintptr_t id);

// custom_vjp returns f(args), differentiated by vjp.
arrays custom_vjp(function f, vjp_function vjp, const arrays& args);

}  // namespace mlxg

#endif
