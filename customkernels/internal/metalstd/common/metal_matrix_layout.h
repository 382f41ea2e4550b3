// The layout of an 8×8 matrix in a simdgroup: each lane holds two elements.
#ifndef METAL_MATRIX_LAYOUT_H
#define METAL_MATRIX_LAYOUT_H

#include "metal_simd.h"

namespace mlxg {

// The row and the first column of a lane's two elements, which are adjacent in a row. Apple GPUs have the same layout,
// and kernels that use thread_elements depend on it.
MLXG_INLINE constexpr unsigned matrix_row(unsigned lane) {
  return (lane / 4 & 4) + lane / 2 % 4;
}
MLXG_INLINE constexpr unsigned matrix_column(unsigned lane) {
  return (lane / 4 & 2) * 2 + lane % 2 * 2;
}

// The elements of one lane in c + a·b.
struct multiply_arguments {
  float a[2], b[2], c[2];
};

}  // namespace mlxg

#endif
