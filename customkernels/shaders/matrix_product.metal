// Product of matrices: c = a·b, c is [rows, columns], a is [rows, inner] and b is [inner, columns].
//
// Reference: compare/oracle/matmul.go.
//
// Storage is T, arithmetic float. The kernel is for CPUs whose MLX has no fast matrix product. A thread computes blocks
// of c. For each INNER columns of a, it converts the block's rows of a and, WIDTH columns at a time, the rows of b to
// floats, which then stay in a cache. It adds the products of INNER terms in the order of the terms, and then the sums
// of INNER terms one after the other. So results have the same bits in every run.
//
// Launch:
//
//   parameter    meaning                                      constraint
//   A_TRANSPOSED a is stored as its transpose
//   B_TRANSPOSED b is stored as its transpose
//   BLOCK_M      rows of a block                              multiple of 8
//   BLOCK_N      columns of a block                           multiple of WIDTH
//   INNER        terms that are added at a time               multiple of 8
//   WIDTH        columns of b that are converted at a time    multiple of 8
//   threads      per group                                    1
//   groups       share the blocks, row by row                 any
//
// Device traffic in elements of T: a once for each BLOCK_N columns, b once for each BLOCK_M rows, and c once.

#include "packed_product.h"
#include "vectors.h"

// load_eight reads 8 elements of a row of `width` elements. Elements beyond its end are zero.
template <typename T>
inline void load_eight(device const T* row, size_t at, size_t width, bool is_aligned, thread float* to) {
  load_vec<8>(row, at, width, is_aligned && at < width, to);
}

// load_block reads height × width elements of a matrix from `row` and `column` on as floats. It may also read the
// following ones, up to multiples of 8. Elements beyond the matrix, which has `rows` rows and `columns` columns, are
// zero. If TRANSPOSED, the matrix is stored as its transpose.
template <bool TRANSPOSED, int COLUMNS, typename T>
inline void load_block(
    device const T* matrix,
    size_t row,
    size_t column,
    size_t rows,
    size_t columns,
    int height,
    int width,
    thread float (*to)[COLUMNS]) {
  const bool is_aligned = vec_aligned<8>(matrix, TRANSPOSED ? rows : columns);
  if (!TRANSPOSED) {
    for (int i = 0; i < height; i++) {
      device const T* const from = matrix + (row + i) * columns;
      for (int j = 0; j < width; j += 8) {
        load_eight(from, column + j, row + i < rows ? columns : 0, is_aligned, to[i] + j);
      }
    }
    return;
  }
  for (int j = 0; j < width; j += 8) {
    for (int i = 0; i < height; i += 8) {
      float block[8][8];
      for (int k = 0; k < 8; k++) {
        device const T* const from = matrix + (column + j + k) * rows;
        load_eight(from, row + i, column + j + k < columns ? rows : 0, is_aligned, block[k]);
      }
      transpose_block(block, to[i] + j, COLUMNS);
    }
  }
}

// store_block writes a block of a matrix. Elements beyond the matrix are not written.
template <int ROWS, int COLUMNS, typename T>
inline void store_block(
    thread const float (&block)[ROWS][COLUMNS],
    device T* matrix,
    size_t row,
    size_t column,
    size_t rows,
    size_t columns) {
  const bool is_aligned = vec_aligned<8>(matrix, columns);
  for (int i = 0; i < ROWS && row + i < rows; i++) {
    for (int j = 0; j < COLUMNS && column + j < columns; j += 8) {
      store_vec<8>(matrix + (row + i) * columns, column + j, columns, is_aligned, block[i] + j);
    }
  }
}

template <typename T, bool A_TRANSPOSED, bool B_TRANSPOSED, int BLOCK_M, int BLOCK_N, int INNER, int WIDTH>
[[kernel]] void matrix_product(
    device const T* a [[buffer(0)]],
    device const T* b [[buffer(1)]],
    constant uint& rows [[buffer(2)]],
    constant uint& columns [[buffer(3)]],
    constant uint& inner [[buffer(4)]],
    device T* c [[buffer(5)]],
    uint group [[threadgroup_position_in_grid]],
    uint groups [[threadgroups_per_grid]]) {
  const size_t blocks_per_row = (columns + BLOCK_N - 1) / BLOCK_N;
  const size_t blocks = (rows + BLOCK_M - 1) / BLOCK_M * blocks_per_row;
  for (size_t block = group; block < blocks; block += groups) {
    const size_t row = block / blocks_per_row * BLOCK_M, column = block % blocks_per_row * BLOCK_N;
    const int height = int(min(size_t(BLOCK_M), (rows - row + 7) / 8 * 8));
    float sum[BLOCK_M][BLOCK_N];
    for (int i = 0; i < BLOCK_M; i++) {
      for (int j = 0; j < BLOCK_N; j++) {
        sum[i][j] = 0;
      }
    }
    for (size_t k = 0; k < inner; k += INNER) {
      const int terms = int(min(size_t(INNER), inner - k));
      float left[BLOCK_M][INNER];
      load_block<A_TRANSPOSED>(a, row, k, rows, inner, height, terms, left);
      for (int j = 0; j < BLOCK_N && column + j < columns; j += WIDTH) {
        float right[INNER][WIDTH];
        load_block<B_TRANSPOSED>(b, k, column + j, inner, columns, terms, WIDTH, right);
        add_packed_product(&sum[0][j], BLOCK_N, left, right, height, terms);
      }
    }
    store_block(sum, c, row, column, rows, columns);
  }
}
