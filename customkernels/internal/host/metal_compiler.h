// What the vocabulary takes from the compiler.
#ifndef METAL_COMPILER_H
#define METAL_COMPILER_H

#include <stddef.h>
#include <stdint.h>

// What a GPU's compiler wants before a function; those below are such themselves.
#define MLXG_DEVICE
#define MLX_MTL_PRAGMA_UNROLL _Pragma("GCC unroll 16")
#define METAL_FUNC inline __attribute__((always_inline))
#define MLXG_INLINE [[gnu::always_inline]] inline

#endif
