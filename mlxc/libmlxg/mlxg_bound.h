// Launches that hold their constant inputs.
#ifndef MLXG_BOUND_H
#define MLXG_BOUND_H

#include <cstddef>
#include <map>
#include <memory>

#include "mlxg_primitive.h"

namespace mlxg {

// constant_inputs are computed inputs of a launch by position.
using constant_inputs = std::map<size_t, mx::array>;

// bound_launch returns a launch without these inputs, which are added when it is evaluated. Its last input must be
// keeper_of the same constants.
std::shared_ptr<mx::Primitive> bound_launch(std::shared_ptr<mx::Primitive> launch, constant_inputs constants);

// keeper_of returns an empty array that owns the constants. A device keeps the inputs of a node until it has computed
// the node.
mx::array keeper_of(constant_inputs constants);

}  // namespace mlxg

#endif
