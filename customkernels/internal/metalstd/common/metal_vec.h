// The names of Metal's vectors, also those of the header simd/simd.h, and as_type.
#ifndef METAL_VEC_H
#define METAL_VEC_H

#include "metal_packed.h"
#include "metal_vector.h"

namespace metal {

#define MLXG_VECTOR_NAMES(T, NAME)           \
  using NAME##2 = vec<T, 2>;                 \
  using NAME##3 = vec<T, 3>;                 \
  using NAME##4 = vec<T, 4>;                 \
  using vector_##NAME##2 = vec<T, 2>;        \
  using vector_##NAME##3 = vec<T, 3>;        \
  using vector_##NAME##4 = vec<T, 4>;        \
  using simd_##NAME##2 = vec<T, 2>;          \
  using simd_##NAME##3 = vec<T, 3>;          \
  using simd_##NAME##4 = vec<T, 4>;          \
  using packed_##NAME##2 = packed_vec<T, 2>; \
  using packed_##NAME##3 = packed_vec<T, 3>; \
  using packed_##NAME##4 = packed_vec<T, 4>;
MLXG_VECTOR_NAMES(bool, bool)
MLXG_VECTOR_NAMES(char, char)
MLXG_VECTOR_NAMES(uchar, uchar)
MLXG_VECTOR_NAMES(short, short)
MLXG_VECTOR_NAMES(ushort, ushort)
MLXG_VECTOR_NAMES(int, int)
MLXG_VECTOR_NAMES(uint, uint)
MLXG_VECTOR_NAMES(long, long)
MLXG_VECTOR_NAMES(ulong, ulong)
MLXG_VECTOR_NAMES(half, half)
MLXG_VECTOR_NAMES(bfloat, bfloat)
MLXG_VECTOR_NAMES(float, float)
#undef MLXG_VECTOR_NAMES

// Reinterprets the bits of a value as another type of the same size.
template <class To, class From>
MLXG_INLINE constexpr To as_type(const From& from) {
  static_assert(sizeof(To) == sizeof(From), "as_type needs types of one size");
  if constexpr (__is_trivially_copyable(To) && __is_trivially_copyable(From)) {
    return __builtin_bit_cast(To, from);
  } else {
    To to{};
    __builtin_memcpy(&to, &from, sizeof(To));
    return to;
  }
}

}  // namespace metal

#endif
