// The arguments of a kernel's call. Each converts to the type of the kernel's parameter.
#ifndef METAL_ARGUMENTS_H
#define METAL_ARGUMENTS_H

#include "metal_simd.h"

namespace mlxg {

struct pointer_argument {
  void* at;
  template <class T>
  MLXG_INLINE operator T*() const {
    return static_cast<T*>(at);
  }
};
struct reference_argument {
  void* at;
  template <class T>
  MLXG_INLINE operator T&() const {
    return *static_cast<T*>(at);
  }
};

// An array of threadgroup memory with a number of elements, or of bytes for a void pointer.
template <int elements, int id>
struct threadgroup_pointer {
  template <class T>
  MLXG_INLINE operator T*() const {
    if constexpr (metal::is_same_v<metal::remove_cv_t<T>, void>) {
      return threadgroup_variable<char[elements], id>();
    } else {
      return threadgroup_variable<metal::remove_cv_t<T>[elements], id>();
    }
  }
};
template <int elements, int id>
struct threadgroup_reference {
  template <class T>
  MLXG_INLINE operator T&() const {
    return threadgroup_variable<metal::remove_cv_t<T>, id>();
  }
};

}  // namespace mlxg

#endif
