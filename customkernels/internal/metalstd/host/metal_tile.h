// The products of tile_thread.h, tile_columns.h and packed_product.h in blocks (metal_block.h). Shaders use them if
// MLXG_THREAD_PRODUCTS is defined.
#ifndef METAL_TILE_H
#define METAL_TILE_H

#include "metal_block.h"

#ifdef MLXG_THREAD_PRODUCTS

#if __has_builtin(__builtin_shufflevector)
#define MLXG_SHUFFLE(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define MLXG_SHUFFLE(a, b, ...) __builtin_shuffle(a, b, (mlxg::indices8){__VA_ARGS__})
#endif

namespace mlxg {

using indices8 [[gnu::vector_size(32)]] = int;

// Adds left · right to sum, for rows of INNER floats of left and of WIDTH floats of right.
template <int INNER, int WIDTH>
MLXG_INLINE void add_packed_product(
    float* sum, int stride, const float* left, const float* right, int rows, int terms) {
  using block = column_block<WIDTH & -WIDTH>;  // the largest power of two that divides WIDTH
  for (int c = 0; c < WIDTH; c += block::WIDTH) {
    add_columns<block::W, block::VECTORS>(sum + c, stride, left, INNER, 1, right + c, WIDTH, rows, terms);
  }
}

// Transposes 8×8 elements.
MLXG_INLINE void transpose_8(const float (*from)[8], float* to, int stride) {
  floats<8> a[8], b[8];
  for (int i = 0; i < 8; i += 2) {
    const floats<8> x = load_floats<8>(from[i]), y = load_floats<8>(from[i + 1]);
    a[i] = MLXG_SHUFFLE(x, y, 0, 8, 1, 9, 4, 12, 5, 13);
    a[i + 1] = MLXG_SHUFFLE(x, y, 2, 10, 3, 11, 6, 14, 7, 15);
  }
  for (int i = 0; i < 8; i += 4) {
    for (int j = 0; j < 2; ++j) {
      b[i + 2 * j] = MLXG_SHUFFLE(a[i + j], a[i + j + 2], 0, 1, 8, 9, 4, 5, 12, 13);
      b[i + 2 * j + 1] = MLXG_SHUFFLE(a[i + j], a[i + j + 2], 2, 3, 10, 11, 6, 7, 14, 15);
    }
  }
  for (int i = 0; i < 4; ++i) {
    store_floats<8>(MLXG_SHUFFLE(b[i], b[i + 4], 0, 1, 2, 3, 8, 9, 10, 11), to + i * stride);
    store_floats<8>(MLXG_SHUFFLE(b[i], b[i + 4], 4, 5, 6, 7, 12, 13, 14, 15), to + (i + 4) * stride);
  }
}

// Copies COLUMNS columns of the right-hand matrix as floats. The matrix has INNER rows and is transposed in memory if
// TRANSPOSED. Rows in memory at or beyond `rows` read as zero.
template <bool TRANSPOSED, int INNER, int COLUMNS, class T>
[[gnu::noinline]] void pack_columns(const T* from, size_t stride, int rows, float (*to)[COLUMNS]) {
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
  add_columns<W, PAIRED ? 2 : 1>(sum, sum_stride, left, INNER, 1, packed[0], WIDTH, ROWS, INNER);
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

// Adds left · right to `to`, for ROWS rows of left, a multiple of 8. Element k of row r of left is at
// left[r * row_stride + k * term_stride]. The columns of a block of right stay in the first-level cache for all rows.
//
// Row i of right, if IS_RIGHT, or of the result is 0 before column i + diagonal. In each group of 32 columns, the terms
// or rows from the first one on that is 0 are omitted.
template <bool IS_RIGHT, int ROWS, int INNER, int COLUMNS, class SUM>
MLXG_INLINE void add_rows(
    float (*to)[COLUMNS],
    const float* left,
    int row_stride,
    size_t term_stride,
    const float (*right)[COLUMNS],
    int diagonal,
    SUM sum) {
  constexpr int limit = IS_RIGHT ? INNER : ROWS;
  if (COLUMNS > 32 && diagonal + limit <= 32) {
    using block = column_block<COLUMNS>;
    for (int c = 0; c < COLUMNS; c += block::WIDTH) {
      add_columns<block::W, block::VECTORS>(
          to[0] + c, COLUMNS, left, row_stride, term_stride, right[0] + c, COLUMNS, ROWS, INNER, sum);
    }
    return;
  }
  using block = column_block<(COLUMNS < 32 ? COLUMNS : 32)>;
  for (int c = 0; c < COLUMNS; c += block::WIDTH) {
    const int nonzero = c / 32 * 32 + 32 - diagonal;
    const int used = nonzero < 0 ? 0 : nonzero < limit ? nonzero : limit;
    add_columns<block::W, block::VECTORS>(
        to[0] + c, COLUMNS, left, row_stride, term_stride, right[0] + c, COLUMNS, IS_RIGHT ? ROWS : used,
        IS_RIGHT ? used : INNER, sum);
  }
}

// Returns the number of rows or columns of a panel that are converted together: a part of `total` with at most 16 KiB
// of floats, or 8. `width` is the number of floats of each. Fibers have little stack.
constexpr int converted_part(int total, int width) {
  int part = total;
  while (part > 8 && (total % part != 0 || part * width > 4096)) {
    part -= 8;
  }
  return part;
}

// Computes panel · right, for PANEL_ROWS rows of the panel that are INNER elements apart. Rows at or beyond `rows` read
// as zero. Floats are read in place. Row i of the product is 0 before column i + diagonal.
template <int PANEL_ROWS, int INNER, int COLUMNS, class T>
[[gnu::noinline]] void multiply_rows(
    float (*product)[COLUMNS], const T* panel, int rows, const float (*right)[COLUMNS], int diagonal) {
  if (diagonal + PANEL_ROWS > 32) {
    __builtin_memset(product, 0, sizeof(float[PANEL_ROWS][COLUMNS]));
  }
  constexpr int PART = converted_part(PANEL_ROWS, INNER);
  for (int r = 0; r < PANEL_ROWS; r += PART) {
    float converted[PART][INNER];
    const T* const from = panel + r * INNER;
    const float* left = reinterpret_cast<const float*>(from);
    if (sizeof(T) != sizeof(float) || r + PART > rows) {
      pack_columns<false, PART, INNER>(from, INNER, rows - r, converted);
      left = converted[0];
    }
    add_rows<false, PART, INNER>(product + r, left, INNER, 1, right, diagonal + r, new_sum{});
  }
}

// Multiplies each column of sum by its factor and adds panelᵀ · right, for INNER rows of the panel that are
// PANEL_COLUMNS elements apart. Rows at or beyond `rows` read as zero. Floats are read in place. Row i of right is 0
// before column i + diagonal. Without factors, RESCALES is false.
template <bool RESCALES, int PANEL_COLUMNS, int INNER, int COLUMNS, class T>
[[gnu::noinline]] void add_transposed_rows(
    float (*sum)[COLUMNS],
    const T* panel,
    int rows,
    const float (*right)[COLUMNS],
    int diagonal,
    const float* factors = nullptr) {
  constexpr int PART = converted_part(PANEL_COLUMNS, INNER);
  for (int c = 0; c < PANEL_COLUMNS; c += PART) {
    float converted[INNER][PART];
    const float* left = reinterpret_cast<const float*>(panel + c);
    size_t term_stride = PANEL_COLUMNS;
    if (sizeof(T) != sizeof(float) || rows < INNER) {
      pack_columns<false, INNER, PART>(panel + c, PANEL_COLUMNS, rows, converted);
      left = converted[0];
      term_stride = PART;
    }
    if constexpr (RESCALES) {
      const rescaled_sum<COLUMNS> rescaled = {sum[0], factors};
      add_rows<true, PART, INNER>(sum + c, left, 1, term_stride, right, diagonal, rescaled);
    } else {
      add_rows<true, PART, INNER>(sum + c, left, 1, term_stride, right, diagonal, plain_sum{});
    }
  }
}

// Adds scale · left · right to `rows` rows of COLUMNS floats, from column FIRST on. Row i of left is 0 before column
// i + diagonal. It prefetches the rows of the next call.
template <int FIRST, int INNER, int COLUMNS>
[[gnu::noinline]] void add_scaled_product(
    float* to, int rows, const float (*left)[INNER], const float* right, float scale, int diagonal) {
  using block = column_block<COLUMNS - FIRST>;
  constexpr int WIDTH = block::WIDTH, END = COLUMNS - (COLUMNS - FIRST) % WIDTH;
  for (int c = FIRST; c < END; c += WIDTH) {
    for (int m = 0, count; m < rows; m += count) {
      count = diagonal + rows <= 0 && rows - m > 8 ? (rows - m) / 8 * 8 : 8;
      const int term = diagonal + m < 0 ? 0 : diagonal + m < INNER ? diagonal + m : INNER;
      const auto add = [&](float* at, int stride) {
        add_columns<block::W, block::VECTORS>(
            at, stride, left[m] + term, INNER, 1, right + term * COLUMNS + c, COLUMNS, count, INNER - term,
            scaled_sum{scale, 32 * COLUMNS});
      };
      float* const at = to + m * COLUMNS + c;
      if (m + count <= rows) {
        add(at, COLUMNS);
        continue;
      }
      float last[8][WIDTH] = {};
      add(last[0], WIDTH);
      for (int r = 0; r < rows - m; ++r) {
        for (int k = 0; k < WIDTH; ++k) {
          at[r * COLUMNS + k] += last[r][k];
        }
      }
    }
  }
  if constexpr (END < COLUMNS) {
    add_scaled_product<END, INNER, COLUMNS>(to, rows, left, right, scale, diagonal);
  }
}

// Stores the first `rows` of ROWS columns of a matrix as rows of COLUMNS elements.
template <int ROWS, int COLUMNS, class T>
[[gnu::noinline]] void store_transpose(const float (*from)[ROWS], T* to, size_t stride, int rows) {
  for (int i = 0; i < ROWS; i += 8) {
    float lines[8][COLUMNS];
    for (int c = 0; c < COLUMNS; c += 8) {
      float block[8][8];
      for (int j = 0; j < 8; ++j) {
        store_floats<8>(load_floats<8>(from[c + j] + i), block[j]);
      }
      transpose_8(block, &lines[0][c], COLUMNS);
    }
    for (int r = 0; r < 8 && i + r < rows; ++r) {
      convert<COLUMNS>(lines[r], to + (i + r) * stride);
    }
  }
}

}  // namespace mlxg

#endif

#endif
