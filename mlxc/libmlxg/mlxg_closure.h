// Arguments and ownership of Go functions that MLX calls.
#ifndef MLXG_CLOSURE_H
#define MLXG_CLOSURE_H

#include "mlx/small_vector.h"
#include "mlxg_internal.h"

namespace mlxg {

// members holds new handles of the arguments of a Go function, which owns them.
class members {
 public:
  explicit members(const arrays& a);
  explicit members(const mlx_vector_array v);
  members(const members&) = delete;

  operator mlxg_members*() { return &go_; }

 private:
  mlx::core::SmallVector<void*> handles_;
  mlxg_members go_;
};

// release_closure is release_id for the payload of an mlx-c closure, which is the id.
void release_closure(void* payload);

}  // namespace mlxg

#endif
