// MLX's header of fast primitives, which has no include guard.
#ifndef MLXG_FAST_H
#define MLXG_FAST_H

#include "mlx/fast_primitives.h"

#endif
