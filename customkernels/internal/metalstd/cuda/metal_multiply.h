// The product of the 8×8 matrices of a simdgroup, whose lanes hold two elements each.
#ifndef METAL_MULTIPLY_H
#define METAL_MULTIPLY_H

#include "metal_simd.h"

namespace mlxg {

// Where the two elements of a lane lie in an 8×8 matrix: side by side in a row, as on Apple
// GPUs, which kernels that use thread_elements rely on.
MLXG_INLINE constexpr unsigned matrix_row(unsigned lane) {
  return (lane / 4 & 4) + lane / 2 % 4;
}
MLXG_INLINE constexpr unsigned matrix_column(unsigned lane) {
  return (lane / 4 & 2) * 2 + lane % 2 * 2;
}
// The lane that holds a row's elements of an even column and the next.
MLXG_INLINE constexpr unsigned matrix_lane_of(unsigned row, unsigned column) {
  return (row & 4) * 4 + (column & 4) * 2 + (row & 3) * 2 + (column & 2) / 2;
}

template <class>
MLXG_INLINE unsigned matrix_lane() {
  return self().lane();
}

struct multiply_arguments {
  float a[2], b[2], c[2];
};

// c becomes c + a·b, of the whole simdgroup: in float, the products added in the order of the
// inner index.
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
