// SIMD-group operations and threadgroup variables of a shader that is compiled for the checker. They replace the
// versions of the host executor. metal_lanes.h includes this file after mlxg_fiber.h.
#ifndef MLXG_CHECKED_H
#define MLXG_CHECKED_H

#include "mlxg_calls.h"

namespace mlxg {

template <class>
struct shuffle;
template <int>
struct multiply;
template <int>
struct vote;
template <class, unsigned>
struct broadcast_first;
template <class, class>
struct quad_reduction;

namespace checker {

// Sets the initial bytes of a variable that the shader declares without a value.
template <class T>
MLXG_INLINE void fill(T& variable) {
  if constexpr (__is_trivially_constructible(T)) {
    __builtin_memset(static_cast<void*>(&variable), mlxg_checked_fill, sizeof variable);
  }
}

// Returns an integer of 32 bits or less as one of 64 bits, and any other value as it is.
template <class T>
MLXG_INLINE constexpr auto wide(const T& v) {
  if constexpr (__is_same(T, uint32_t) || __is_same(T, int32_t) || __is_same(T, uint16_t) || __is_same(T, int16_t)) {
    return int64_t(v);
  } else {
    return v;
  }
}

// Returns an index that a shader computes. wide is the same expression in 64-bit arithmetic.
template <class T, class Wide>
MLXG_INLINE constexpr T index(T narrow, Wide wide) {
  if constexpr (__is_same(T, uint32_t) && __is_same(Wide, int64_t)) {
    if (wide > int64_t(~uint32_t(0))) {
      mlxg_checked_wrap();
    }
  }
  return narrow;
}

template <class>
constexpr uint32_t kind = is_reduction;
template <class T>
constexpr uint32_t kind<shuffle<T>> = is_shuffle;
template <int n>
constexpr uint32_t kind<multiply<n>> = is_matrix;
template <int n>
constexpr uint32_t kind<vote<n>> = is_vote;
template <class T, unsigned width>
constexpr uint32_t kind<broadcast_first<T, width>> = is_vote;
template <class T, class Op>
constexpr uint32_t kind<quad_reduction<T, Op>> = is_quad_reduction;

template <class Operation>
MLXG_INLINE void rendezvous(uint32_t line) {
  mlxg_checked_rendezvous(&Operation::complete, kind<Operation>, line);
}

template <class T>
struct without_extents {
  using type = T;
};
template <class T, size_t n>
struct without_extents<T[n]> : without_extents<T> {};

// The size of a shadow cell in bytes: the size of a number, or the alignment of a structure, at most 8.
template <class T>
constexpr uint32_t cell_size() {
  if constexpr (metal::detail::lanes<T> > 0) {
    return sizeof(metal::detail::scalar_of<T>);
  } else {
    return alignof(T) > 8 ? 8 : alignof(T);
  }
}

namespace {
template <class T, int id, bool zero, class Element = typename without_extents<T>::type>
const uint32_t threadgroup_slot = mlxg_checked_threadgroup(id, sizeof(T), sizeof(Element), cell_size<Element>(), zero);
}

template <class T, int id, bool zero>
MLXG_INLINE void* threadgroup_address() {
  return mlxg_checked_address[threadgroup_slot<T, id, zero>];
}

}  // namespace checker
}  // namespace mlxg

#endif
