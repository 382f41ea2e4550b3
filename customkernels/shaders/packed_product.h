// Products of matrices that one thread has packed as floats.

#define UNROLL_FULLY _Pragma("clang loop unroll(full)")

// multiply_block computes the 8×8 elements of left · right from `row` and `column` on, as sums of the terms from
// `first` to `end` in their order. They stay in registers for all terms. Rows of the result are 16 floats apart.
template <int ROWS, int INNER, int WIDTH>
inline void multiply_block(
    thread const float (&left)[ROWS][INNER],
    int row,
    thread const float (&right)[INNER][WIDTH],
    int column,
    int first,
    int end,
    thread float (*products)[16]) {
  float block[8][8];
  UNROLL_FULLY for (int i = 0; i < 8; i++) {
    UNROLL_FULLY for (int j = 0; j < 8; j++) {
      block[i][j] = 0;
    }
  }
  for (int k = first; k < end; k++) {
    UNROLL_FULLY for (int i = 0; i < 8; i++) {
      UNROLL_FULLY for (int j = 0; j < 8; j++) {
        block[i][j] = fma(left[row + i][k], right[k][column + j], block[i][j]);
      }
    }
  }
  UNROLL_FULLY for (int i = 0; i < 8; i++) {
    UNROLL_FULLY for (int j = 0; j < 8; j++) {
      products[i][j] = block[i][j];
    }
  }
}

// add_packed_product adds left · right to sum, whose rows are `stride` floats apart. left has `rows` rows, a multiple
// of 8, and `terms` columns. Each element is the sum of its terms in their order, which is then added. An executor that
// defines MLXG_THREAD_PRODUCTS does the same with its vector registers.
template <int ROWS, int INNER, int WIDTH>
inline void add_packed_product(
    thread float* sum,
    int stride,
    thread const float (&left)[ROWS][INNER],
    thread const float (&right)[INNER][WIDTH],
    int rows,
    int terms) {
#ifdef MLXG_THREAD_PRODUCTS
  mlxg::add_packed_product<INNER, WIDTH>(sum, stride, left[0], right[0], rows, terms);
#else
  // Rows of 8 floats are stored 16 apart. Adjacent rows make g++ combine two of them in one vector and run out of
  // registers.
  float products[ROWS][16];
  for (int c = 0; c < WIDTH; c += 8) {
    for (int m = 0; m < rows; m += 8) {
      multiply_block(left, m, right, c, 0, terms, products + m);
    }
    // This loop is separate for the same reason.
    for (int m = 0; m < rows; m++) {
      for (int j = 0; j < 8; j++) {
        sum[m * stride + c + j] += products[m][j];
      }
    }
  }
#endif
}

// transpose_block stores the transpose of a block in rows that are `stride` floats apart.
inline void transpose_block(thread const float (&block)[8][8], thread float* to, int stride) {
#ifdef MLXG_THREAD_PRODUCTS
  mlxg::transpose_8(block, to, stride);
#else
  for (int i = 0; i < 8; i++) {
    for (int j = 0; j < 8; j++) {
      to[i * stride + j] = block[j][i];
    }
  }
#endif
}
