// The product of 8×8 matrices of a simdgroup.
#ifndef METAL_MULTIPLY_H
#define METAL_MULTIPLY_H

#include "metal_matrix_layout.h"

namespace mlxg {

// Returns the lane of the running thread. Only a fiber has a lane, so a kernel that merely loads matrices needs fibers
// too.
template <class T>
MLXG_INLINE unsigned matrix_lane() {
  (void)marks_fibers<T>;
  return self().lane();
}

// Computes c + a·b and adds products in the order of the inner index.
template <int = 0>
struct multiply {
  [[gnu::noinline]] static void complete(simdgroup& g, uint32_t active) {
    float a[8][8], b[8][8], c[8][8];
    for (unsigned i = 0; i < simd_width; ++i) {
      // Inactive lanes, for which MSL defines no result, contribute zeros.
      const multiply_arguments v = active >> i & 1u ? slot<multiply_arguments>(g, i) : multiply_arguments{};
      const unsigned row = matrix_row(i), column = matrix_column(i);
      __builtin_memcpy(&a[row][column], v.a, sizeof v.a);
      __builtin_memcpy(&b[row][column], v.b, sizeof v.b);
      __builtin_memcpy(&c[row][column], v.c, sizeof v.c);
    }
    for (unsigned row = 0; row < 8; ++row) {
      for (unsigned k = 0; k < 8; ++k) {
        for (unsigned column = 0; column < 8; ++column) {
          c[row][column] = __builtin_fmaf(a[row][k], b[k][column], c[row][column]);
        }
      }
    }
    for (unsigned i = 0; i < simd_width; ++i) {
      __builtin_memcpy(&results<float[2]>(g)[i], &c[matrix_row(i)][matrix_column(i)], sizeof(float[2]));
    }
  }
};

// Replaces c by c + a·b, for the whole simdgroup.
template <int = 0>
MLXG_INLINE void multiply_accumulate(multiply_arguments& v, line at) {
  const self me;
  slot<multiply_arguments>(me.group(), me.lane()) = v;
  rendezvous<multiply<>>(me, at);
  const float* c = results<float[2]>(me.group())[me.lane()];
  v.c[0] = c[0];
  v.c[1] = c[1];
}

}  // namespace mlxg

#endif
