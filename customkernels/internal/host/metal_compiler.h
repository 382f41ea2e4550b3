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
#define MLX_MTL_PRAGMA_UNROLL _Pragma("GCC unroll 16")
#define METAL_FUNC inline __attribute__((always_inline))
#define MLXG_INLINE [[gnu::always_inline]] inline

#endif
