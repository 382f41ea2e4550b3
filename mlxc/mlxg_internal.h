// Shared by the C++ files of this package only.
#ifndef MLXG_INTERNAL_H
#define MLXG_INTERNAL_H

#include <mutex>
#include <vector>

#include "mlx/array.h"
#include "mlxg.h"

namespace mlxg {

// take_error hands over the message of this thread's last failed call.
char* take_error();
// error_text makes an error message from a text.
char* error_text(const char* what);
// depth is the number of open mlxg_enter calls of this thread.
int depth();

// guard holds the graph lock for a C++ scope that cannot reach Go.
struct guard {
  guard() {
    mlxg_lock();
  }
  ~guard() {
    mlxg_unlock();
  }
  guard(const guard&) = delete;
  guard& operator=(const guard&) = delete;
};

// mlx-c's handle of an array is a pointer to MLX's array.
inline mlx::core::array& array_of(void* ctx) {
  return *static_cast<mlx::core::array*>(ctx);
}

inline std::vector<mlx::core::array> arrays_of(void** ctx, size_t n) {
  std::vector<mlx::core::array> out;
  out.reserve(n);
  for (size_t i = 0; i < n; i++) {
    out.push_back(array_of(ctx[i]));
  }
  return out;
}

inline mlx_vector_array vector_of(void** ctx, size_t n) {
  // mlx_array is a struct with one pointer: an array of handles is an array of
  // pointers.
  static_assert(sizeof(mlx_array) == sizeof(void*));
  return mlx_vector_array_new_data(reinterpret_cast<const mlx_array*>(ctx), n);
}

// results_of hands arrays over as results.
mlxg_results results_of(const std::vector<mlx::core::array>& arrays);

} // namespace mlxg

#endif
