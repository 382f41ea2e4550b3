// Metal's standard library for the checker of a shader file, without the declarations that MLX puts before a kernel.
#ifndef METAL_NATIVE_H
#define METAL_NATIVE_H

#define MLXG_NO_MLX_PRELUDE
#include "metal_host.h"

#endif
