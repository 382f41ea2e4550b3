// Blocks of matrix products in the vector registers of x86-64.
//
// Compilers do not keep a block of a product in registers reliably. Each element is computed as in tile_thread.h: one
// fused multiply-add after the other from 0, then an addition to the sum.
#ifndef METAL_BLOCK_H
#define METAL_BLOCK_H

#include "metal_convert.h"

#if defined(__FMA__) && defined(MLXG_VECTOR_CONVERSIONS)
#define MLXG_THREAD_PRODUCTS

namespace mlxg {

template <int W>
MLXG_INLINE floats<W> load_floats(const float* from) {
  floats<W> v;
  __builtin_memcpy(&v, from, sizeof v);
  return v;
}
template <int W>
MLXG_INLINE void store_floats(floats<W> v, float* to) {
  __builtin_memcpy(to, &v, sizeof v);
}
template <int W>
MLXG_INLINE void fused_multiply_add(floats<W>& sum, floats<W> a, floats<W> b) {
  __asm__("vfmadd231ps %2, %1, %0" : "+v"(sum) : "v"(a), "v"(b));
}

// A row of a block of a product: 1, 2 or 4 vectors. Rows and blocks are lists, because compilers keep the members of a
// structure in registers, but not always the elements of an array.
template <int W, int VECTORS>
struct block_row {
  floats<W> first = {};
  block_row<W, VECTORS - 1> rest;

  MLXG_INLINE static block_row load(const float* from) {
    return {load_floats<W>(from), block_row<W, VECTORS - 1>::load(from + W)};
  }
  // Adds copies · right.
  MLXG_INLINE void add(floats<W> copies, block_row right) {
    fused_multiply_add<W>(first, copies, right.first);
    rest.add(copies, right.rest);
  }
  // Adds *factor · right. With AVX-512, one instruction loads the factor, copies it to all elements and multiplies.
  MLXG_INLINE void add(const float* factor, block_row right) {
#if defined(__AVX512F__) && defined(__AVX512VL__)
    __asm__("vfmadd231ps %2%{1to%c3%}, %1, %0" : "+v"(first) : "v"(right.first), "m"(*factor), "i"(W));
    rest.add(factor, right.rest);
#else
    add(*factor - floats<W>{}, right);
#endif
  }
  template <class SUM>
  MLXG_INLINE void add_to(SUM sum, float* to) const {
    store_floats<W>(sum.template of<W>(to, first), to);
    rest.add_to(sum, to + W);
  }
};
template <int W>
struct block_row<W, 0> {
  MLXG_INLINE static block_row load(const float*) { return {}; }
  MLXG_INLINE void add(floats<W>, block_row) {}
  MLXG_INLINE void add(const float*, block_row) {}
  template <class SUM>
  MLXG_INLINE void add_to(SUM, float*) const {}
};

// A block of a product: ROWS rows.
template <int ROWS, int W, int VECTORS>
struct product_block {
  block_row<W, VECTORS> row;
  product_block<ROWS - 1, W, VECTORS> rest;

  // Adds the products of a column of left, to which `left` points, and a row of right. A factor of four vectors is
  // loaded once.
  MLXG_INLINE void add(const float* left, int stride, block_row<W, VECTORS> right) {
    if (VECTORS > 2) {
      row.add(*left - floats<W>{}, right);
    } else {
      row.add(left, right);
    }
    rest.add(left + stride, stride, right);
  }
  template <class SUM>
  MLXG_INLINE void add_to(SUM sum, float* to, int stride) const {
    row.add_to(sum, to);
    rest.add_to(sum, to + stride, stride);
  }
};
template <int W, int VECTORS>
struct product_block<0, W, VECTORS> {
  MLXG_INLINE void add(const float*, int, block_row<W, VECTORS>) {}
  template <class SUM>
  MLXG_INLINE void add_to(SUM, float*, int) const {}
};

// The results of a product: it is added to the elements in memory, or replaces them. scaled_sum multiplies the product
// before, and prefetches the elements at the distance `ahead`. rescaled_sum multiplies each of COLUMNS columns of the
// elements in memory by its factor before.
struct plain_sum {
  template <int W>
  MLXG_INLINE floats<W> of(const float* at, floats<W> product) const {
    return load_floats<W>(at) + product;
  }
};
struct new_sum {
  template <int W>
  MLXG_INLINE floats<W> of(const float*, floats<W> product) const {
    return floats<W>{} + product;
  }
};
struct scaled_sum {
  float factor;
  int ahead;
  template <int W>
  MLXG_INLINE floats<W> of(const float* at, floats<W> product) const {
    prefetch<W * sizeof(float), true>(at + ahead);
    return load_floats<W>(at) + factor * product;
  }
};
template <int COLUMNS>
struct rescaled_sum {
  const float* elements;
  const float* factors;
  template <int W>
  MLXG_INLINE floats<W> of(const float* at, floats<W> product) const {
    return load_floats<W>(at) * load_floats<W>(factors + (at - elements) % COLUMNS) + product;
  }
};

// The rows of a block with two vectors for each, and the maximum number of vectors. A block of 6 rows of four vectors
// takes all but a few of 32 registers. It has fewer instructions for each multiplication than 8 rows of two.
#ifdef __AVX512F__
constexpr int block_rows = 8, max_vectors = 4;
#else
constexpr int block_rows = 4, max_vectors = 2;
#endif

// Adds ROWS rows of left · right to `to`, for `terms` columns of left and rows of right. Columns of left are
// `term_stride` floats apart. Compilers keep the block in registers if this is a function and the loop is unrolled.
template <int ROWS, int W, int VECTORS, class SUM>
MLXG_INLINE void add_block(
    float* to,
    int to_stride,
    const float* left,
    int left_stride,
    size_t term_stride,
    const float* right,
    int right_stride,
    int terms,
    SUM sum) {
  product_block<ROWS, W, VECTORS> block;
  int k = 0;
  for (; k + 2 <= terms; k += 2) {
#pragma GCC unroll 2
    for (int u = 0; u < 2; ++u, left += term_stride, right += right_stride) {
      block.add(left, left_stride, block_row<W, VECTORS>::load(right));
    }
  }
  for (; k < terms; ++k, left += term_stride, right += right_stride) {
    block.add(left, left_stride, block_row<W, VECTORS>::load(right));
  }
  block.add_to(sum, to, to_stride);
}

template <int ROWS>
struct rows_of {
  static constexpr int rows = ROWS;
};

// Adds left · right to `to`, for `rows` rows of left, rounded up to a multiple of 8, and VECTORS·W columns of right.
template <int W, int VECTORS, class SUM = plain_sum>
MLXG_INLINE void add_columns(
    float* to,
    int to_stride,
    const float* left,
    int left_stride,
    size_t term_stride,
    const float* right,
    int right_stride,
    int rows,
    int terms,
    SUM sum = {}) {
  const auto add = [&](auto block, int m) {
    add_block<block.rows, W, VECTORS>(
        to + m * to_stride, to_stride, left + m * left_stride, left_stride, term_stride, right, right_stride, terms,
        sum);
    return m + block.rows;
  };
  rows = (rows + 7) / 8 * 8;
  for (int m = 0; m < rows;) {
    if constexpr (VECTORS < 4) {
      m = add(rows_of<VECTORS == 2 ? block_rows : 8>{}, m);
    } else if (rows - m == 4 || rows - m == 8) {
      m = add(rows_of<4>{}, m);
    } else {
      m = add(rows_of<6>{}, m);
    }
  }
}

// The vectors of a row of a block of a product, for at most COLUMNS columns, which are 8 or at least 16.
template <int COLUMNS>
struct column_block {
  static constexpr int W = COLUMNS < floats_per_register ? 8 : floats_per_register;
  static constexpr int VECTORS = COLUMNS >= max_vectors * W ? max_vectors : COLUMNS >= 2 * W ? 2 : 1;
  static constexpr int WIDTH = VECTORS * W;
};

}  // namespace mlxg

#endif

#endif
