// The product of 8×8 matrices of a simdgroup.
#ifndef METAL_MULTIPLY_H
#define METAL_MULTIPLY_H

#include "metal_matrix_layout.h"

namespace mlxg {

// Returns the lane that holds the elements of a row at an even column and the next.
MLXG_INLINE constexpr unsigned matrix_lane_of(unsigned row, unsigned column) {
  return (row & 4) * 4 + (column & 4) * 2 + (row & 3) * 2 + (column & 2) / 2;
}

template <class>
MLXG_INLINE unsigned matrix_lane() {
  return self().lane();
}

// Replaces c by c + a·b for the whole simdgroup, in float. It adds products in the order of the inner index.
template <int = 0>
MLXG_INLINE void multiply_accumulate(multiply_arguments& v, line) {
  const unsigned row = matrix_row(self().lane()), column = matrix_column(self().lane());
#pragma unroll
  for (unsigned k = 0; k < 8; ++k) {
    const float a = from_lane(0xffffffffu, v.a[k % 2], matrix_lane_of(row, k & 6));
    const unsigned b = matrix_lane_of(k, column);
    v.c[0] = ::fmaf(a, from_lane(0xffffffffu, v.b[0], b), v.c[0]);
    v.c[1] = ::fmaf(a, from_lane(0xffffffffu, v.b[1], b), v.c[1]);
  }
}

}  // namespace mlxg

#endif
