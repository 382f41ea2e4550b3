// The products of tile_thread.h and packed_product.h and the reductions of rows of tiles.h in the vector registers of
// x86-64. Shaders use them if MLXG_THREAD_PRODUCTS is defined.
//
// Compilers do not keep a block of a product in registers reliably. Each element is computed as in tile_thread.h: one
// fused multiply-add after the other from 0, then an addition to the sum.
#ifndef METAL_TILE_H
#define METAL_TILE_H

#include "metal_convert.h"

#if defined(__FMA__) && defined(MLXG_VECTOR_CONVERSIONS)
#define MLXG_THREAD_PRODUCTS

#if __has_builtin(__builtin_shufflevector)
#define MLXG_SHUFFLE(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define MLXG_SHUFFLE(a, b, ...) __builtin_shuffle(a, b, (mlxg::indices8){__VA_ARGS__})
#endif

namespace mlxg {

using indices8 [[gnu::vector_size(32)]] = int;

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

// A block of a product: ROWS × 2·W elements, or ROWS × W if not PAIRED. It is a list of rows, because compilers keep
// the members of a structure in registers, but not always the elements of an array.
template <int ROWS, int W, bool PAIRED>
struct product_block {
  floats<W> first = {}, second = {};
  product_block<ROWS - 1, W, PAIRED> rest;

  // Adds the products of column k of left, to which `left` points, and a row of right.
  MLXG_INLINE void add(const float* left, int stride, floats<W> right0, floats<W> right1) {
    const floats<W> factor = *left - floats<W>{};
    fused_multiply_add<W>(first, factor, right0);
    if (PAIRED) {
      fused_multiply_add<W>(second, factor, right1);
    }
    rest.add(left + stride, stride, right0, right1);
  }
  MLXG_INLINE void add_to(float* sum, int stride) const {
    store_floats<W>(load_floats<W>(sum) + first, sum);
    if (PAIRED) {
      store_floats<W>(load_floats<W>(sum + W) + second, sum + W);
    }
    rest.add_to(sum + stride, stride);
  }
};
template <int W, bool PAIRED>
struct product_block<0, W, PAIRED> {
  MLXG_INLINE void add(const float*, int, floats<W>, floats<W>) {}
  MLXG_INLINE void add_to(float*, int) const {}
};

// Rows of a block: with two vectors for each, all but a few of the 32 or 16 vector registers.
#ifdef __AVX512F__
constexpr int block_rows = 8;
#else
constexpr int block_rows = 4;
#endif

// Adds left · right to sum, for `rows` rows of left, `terms` columns of left and rows of right, and 2·W or W columns of
// right. `rows` is a multiple of 8.
template <int W, bool PAIRED>
MLXG_INLINE void add_columns(
    float* sum,
    int sum_stride,
    const float* left,
    int left_stride,
    const float* right,
    int right_stride,
    int rows,
    int terms) {
  for (int m = 0; m < rows; m += block_rows) {
    product_block<block_rows, W, PAIRED> block;
    for (int k = 0; k < terms; ++k) {
      const float* const row = right + k * right_stride;
      block.add(left + m * left_stride + k, left_stride, load_floats<W>(row), load_floats<W>(row + PAIRED * W));
    }
    block.add_to(sum + m * sum_stride, sum_stride);
  }
}

// Adds left · right to sum, for rows of INNER floats of left and of WIDTH floats of right.
template <int INNER, int WIDTH>
MLXG_INLINE void add_packed_product(
    float* sum, int stride, const float* left, const float* right, int rows, int terms) {
  constexpr int W = WIDTH < floats_per_register ? 8 : floats_per_register;
  constexpr bool PAIRED = WIDTH % (2 * W) == 0;
  for (int c = 0; c < WIDTH; c += PAIRED ? 2 * W : W) {
    add_columns<W, PAIRED>(sum + c, stride, left, INNER, right + c, WIDTH, rows, terms);
  }
}

// Transposes 8×8 elements.
MLXG_INLINE void transpose_8(floats<8> (&v)[8]) {
  floats<8> a[8], b[8];
  for (int i = 0; i < 8; i += 2) {
    a[i] = MLXG_SHUFFLE(v[i], v[i + 1], 0, 8, 1, 9, 4, 12, 5, 13);
    a[i + 1] = MLXG_SHUFFLE(v[i], v[i + 1], 2, 10, 3, 11, 6, 14, 7, 15);
  }
  for (int i = 0; i < 8; i += 4) {
    for (int j = 0; j < 2; ++j) {
      b[i + 2 * j] = MLXG_SHUFFLE(a[i + j], a[i + j + 2], 0, 1, 8, 9, 4, 5, 12, 13);
      b[i + 2 * j + 1] = MLXG_SHUFFLE(a[i + j], a[i + j + 2], 2, 3, 10, 11, 6, 7, 14, 15);
    }
  }
  for (int i = 0; i < 4; ++i) {
    v[i] = MLXG_SHUFFLE(b[i], b[i + 4], 0, 1, 2, 3, 8, 9, 10, 11);
    v[i + 4] = MLXG_SHUFFLE(b[i], b[i + 4], 4, 5, 6, 7, 12, 13, 14, 15);
  }
}
MLXG_INLINE void transpose_8(const float (*from)[8], float* to, int stride) {
  floats<8> v[8];
  for (int i = 0; i < 8; ++i) {
    v[i] = load_floats<8>(from[i]);
  }
  transpose_8(v);
  for (int i = 0; i < 8; ++i) {
    store_floats<8>(v[i], to + i * stride);
  }
}

// Computes the largest element of each row, as row_max of tiles.h does. Compilers compare one element at a time.
template <int ROWS, int COLUMNS>
MLXG_INLINE void row_max(const float (&tile)[ROWS][COLUMNS], float* largest) {
  const auto larger = [](floats<8> a, floats<8> b) {
    const floats<8> m = a < b ? b : a;
    return a == a ? m : b;
  };
  for (int i = 0; i < ROWS; i += 8) {
    floats<8> parts[8];
    for (int r = 0; r < 8; ++r) {
      parts[r] = load_floats<8>(tile[i + r]);
      for (int j = 8; j < COLUMNS; j += 8) {
        parts[r] = larger(parts[r], load_floats<8>(tile[i + r] + j));
      }
    }
    transpose_8(parts);
    floats<8> m = parts[0];
    for (int k = 1; k < 8; ++k) {
      m = larger(m, parts[k]);
    }
    store_floats<8>(m, largest + i);
  }
}

// Computes the sum of each row, as row_sum of tiles.h does.
template <int ROWS, int COLUMNS>
MLXG_INLINE void row_sum(const float (&tile)[ROWS][COLUMNS], float* sums) {
  for (int i = 0; i < ROWS; i += 8) {
    floats<8> parts[8] = {};
    for (int r = 0; r < 8; ++r) {
      for (int j = 0; j < COLUMNS; j += 8) {
        parts[r] += load_floats<8>(tile[i + r] + j);
      }
    }
    transpose_8(parts);
    for (int n = 4; n > 0; n /= 2) {
      for (int k = 0; k < n; ++k) {
        parts[k] += parts[k + n];
      }
    }
    store_floats<8>(parts[0], sums + i);
  }
}

// Copies COLUMNS columns of the right-hand matrix as floats. The matrix has INNER rows and is transposed in memory if
// TRANSPOSED. Rows in memory at or beyond `rows` read as zero.
template <bool TRANSPOSED, int INNER, int COLUMNS, class T>
MLXG_INLINE void pack_columns(const T* from, size_t stride, int rows, float (*to)[COLUMNS]) {
  if (!TRANSPOSED) {
    for (int k = 0; k < INNER; ++k) {
      if (k < rows) {
        convert<COLUMNS>(from + k * stride, to[k]);
      } else {
        __builtin_memset(to[k], 0, sizeof to[k]);
      }
    }
    return;
  }
  for (int c = 0; c < COLUMNS; c += 8) {
    for (int k = 0; k < INNER; k += 8) {
      float block[8][8] = {};
      for (int j = 0; j < 8; ++j) {
        if (c + j < rows) {
          convert<8>(from + (c + j) * stride + k, block[j]);
        }
      }
      transpose_8(block, &to[k][c], COLUMNS);
    }
  }
}

// Packs and multiplies WIDTH columns: W or 2·W. It is not inlined, so that the packed columns of one product at a time
// are on the stack of a fiber.
template <bool TRANSPOSED, int ROWS, int INNER, int W, bool PAIRED, class T>
[[gnu::noinline]] void add_packed(
    float* sum, int sum_stride, const float* left, const T* right, size_t stride, int rows) {
  constexpr int WIDTH = PAIRED ? 2 * W : W;
  float packed[INNER][WIDTH];
  pack_columns<TRANSPOSED, INNER, WIDTH>(right, stride, rows, packed);
  add_columns<W, PAIRED>(sum, sum_stride, left, INNER, packed[0], WIDTH, ROWS, INNER);
}

// Adds left · right to sum, from column FIRST of right on. The packed columns have at most 32 KiB, a quarter of the
// stack of a fiber, which also has tiles.
template <bool TRANSPOSED, int FIRST, int ROWS, int INNER, int COLUMNS, class T>
MLXG_INLINE void add_product(
    float (*sum)[COLUMNS], const float (*left)[INNER], const T* right, size_t stride, int rows) {
  constexpr int MOST = 8192 / INNER, LEFT = COLUMNS - FIRST < MOST ? COLUMNS - FIRST : MOST;
  constexpr int W = LEFT < floats_per_register ? 8 : floats_per_register;
  constexpr bool PAIRED = LEFT >= 2 * W;
  constexpr int NEXT = FIRST + (PAIRED ? 2 * W : W);
  add_packed<TRANSPOSED, ROWS, INNER, W, PAIRED>(
      &sum[0][FIRST], COLUMNS, left[0], right + (TRANSPOSED ? FIRST * stride : FIRST), stride,
      rows - (TRANSPOSED ? FIRST : 0));
  if constexpr (NEXT < COLUMNS) {
    add_product<TRANSPOSED, NEXT, ROWS, INNER, COLUMNS>(sum, left, right, stride, rows);
  }
}

}  // namespace mlxg

#endif

#endif
