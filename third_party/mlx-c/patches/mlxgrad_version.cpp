// Copyright (c) The mlxgrad authors. MIT license.
//
// The version of mlx-c and of the MLX headers that libmlxc was compiled against. mlx-c exports neither, so a mismatched
// pair could not be detected before it crashes.

#include "mlx/version.h"

#define MLXGRAD_TEXT_(x) #x
#define MLXGRAD_TEXT(x) MLXGRAD_TEXT_(x)

extern "C" const char* mlxgrad_mlx_c_version(void) {
  return MLXGRAD_MLX_C_VERSION;
}

extern "C" const char* mlxgrad_mlx_c_built_against(void) {
  return MLXGRAD_TEXT(MLX_VERSION_MAJOR) "." MLXGRAD_TEXT(MLX_VERSION_MINOR) "." MLXGRAD_TEXT(MLX_VERSION_PATCH);
}
