// Macros and functions of the library that depend on the compiler, for GCC and clang.
#ifndef METAL_COMPILER_H
#define METAL_COMPILER_H

#include <stddef.h>
#include <stdint.h>

// The attribute of functions on a GPU. MLXG_INLINE includes it.
#define MLXG_DEVICE
// The upper 64 bits of 64-bit products.
#define MLXG_UMUL64HI(a, b) ((unsigned __int128)(a) * (b) >> 64)
#define MLXG_MUL64HI(a, b) ((__int128)(a) * (b) >> 64)
// Metal's rsqrt, which is one instruction on a GPU.
#define MLXG_RSQRT(x) (1.0f / __builtin_sqrtf(x))
#define MLX_MTL_PRAGMA_UNROLL _Pragma("GCC unroll 16")
#define METAL_FUNC inline __attribute__((always_inline))
#define MLXG_INLINE [[gnu::always_inline]] inline

namespace mlxg {
// The minimum and maximum of two floats. A NaN and a number give the number.
MLXG_INLINE float smaller(float a, float b) {
  const float m = b < a ? b : a;
  return a != a ? b : m;
}
MLXG_INLINE float larger(float a, float b) {
  const float m = a < b ? b : a;
  return a != a ? b : m;
}
}  // namespace mlxg

#endif
