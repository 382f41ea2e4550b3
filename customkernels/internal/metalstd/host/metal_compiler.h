// What the vocabulary takes from the compiler.
#ifndef METAL_COMPILER_H
#define METAL_COMPILER_H

#include <stddef.h>
#include <stdint.h>

// What a GPU's compiler wants before a function; those below are such themselves.
#define MLXG_DEVICE
// The upper halves of products of 64 bits.
#define MLXG_UMUL64HI(a, b) ((unsigned __int128)(a) * (b) >> 64)
#define MLXG_MUL64HI(a, b) ((__int128)(a) * (b) >> 64)
// A GPU has an instruction for it.
#define MLXG_RSQRT(x) (1.0f / __builtin_sqrtf(x))
#define MLX_MTL_PRAGMA_UNROLL _Pragma("GCC unroll 16")
#define METAL_FUNC inline __attribute__((always_inline))
#define MLXG_INLINE [[gnu::always_inline]] inline

namespace mlxg {
// The smaller and the larger of two floats, of which a NaN loses against a number.
MLXG_INLINE float smaller(float a, float b) {
  return b < a || a != a ? b : a;
}
MLXG_INLINE float larger(float a, float b) {
  return a < b || a != a ? b : a;
}
}  // namespace mlxg

#endif
