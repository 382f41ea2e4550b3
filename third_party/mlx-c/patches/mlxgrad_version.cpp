// Copyright (c) The mlxgrad authors. MIT licence.
//
// The versions that a libmlxc was made of. mlx-c exports MLX's version at run time
// only, and neither its own nor that of the MLX headers it was compiled against, so
// a mismatched pair could not be told from a good one before it crashed.

#include "mlx/version.h"

#define MLXGRAD_TEXT_(x) #x
#define MLXGRAD_TEXT(x) MLXGRAD_TEXT_(x)

extern "C" const char* mlxgrad_mlx_c_version(void) {
  return MLXGRAD_MLX_C_VERSION;
}

extern "C" const char* mlxgrad_mlx_c_built_against(void) {
  return MLXGRAD_TEXT(MLX_VERSION_MAJOR) "." MLXGRAD_TEXT(MLX_VERSION_MINOR) "." MLXGRAD_TEXT(MLX_VERSION_PATCH);
}
