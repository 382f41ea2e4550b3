// The products of shaders/tiles.h on the matrix units of an NVIDIA GPU.
//
// Floats are rounded to TF32, which has 11 significant bits. If MLXG_TF32 is 0, each float is split into two TF32
// numbers, and three of the four partial products are added, or all if MLXG_FULL_SPLIT is 1. The sum of three has all
// bits of a float but the last two. If MLXG_FMA is 1, and for narrow matrices, floats are multiplied by fma, without
// the matrix units.
#ifndef METAL_TILES_H
#define METAL_TILES_H

// MLXG_DEVICE_TILES makes tiles.h use mlxg::tile, mlxg::panel, mlxg::operand, mlxg::multiply_add,
// mlxg::multiply_transposed and mlxg::finish in place of its own tiles.
#define MLXG_DEVICE_TILES 1

#include "metal_panels.h"

namespace mlxg {

// ---- products of 16 bits ----

// prefetched calls load(n, b) and later multiply(n, b) for each n < STEPS. Loads are DISTANCE steps ahead, so that
// products do not wait for them.
template <int STEPS, int DISTANCE, class Operands, class Load, class Multiply>
MLXG_INLINE void prefetched(Load load, Multiply multiply) {
  Operands b[DISTANCE];
#pragma unroll
  for (int n = 0; n < DISTANCE && n < STEPS; ++n) {
    load(n, b[n]);
  }
#pragma unroll
  for (int n = 0; n < STEPS; ++n) {
    multiply(n, b[n % DISTANCE]);
    if (n + DISTANCE < STEPS) {
      load(n + DISTANCE, b[n % DISTANCE]);
    }
  }
}

// four_matrices holds the result of a load of four matrices.
struct four_matrices {
  unsigned words[4];
};

// multiply_add_transposed adds left · rightᵀ to sum.
template <int ROWS, int INNER, int COLUMNS, int STRIDE, class T>
MLXG_INLINE void multiply_add_transposed(
    tile<ROWS, COLUMNS>& sum,
    const operand<T, ROWS, INNER>& left,
    const panel<T, COLUMNS, INNER, STRIDE>& right,
    unsigned lane) {
  // One load of four 8×8 matrices: inner indices 0 to 7 and 8 to 15 of eight columns, then of the next eight columns.
  const shared_place pairs = right.at(lane % 8 + lane / 16 * 8, lane / 8 % 2 * 8);
  constexpr int PAIRS = COLUMNS / 16;
  prefetched<INNER / 16 * PAIRS, 4, four_matrices>(
      [&](int n, four_matrices& b) {
        load_matrices<false>(b.words, pairs + right.offset(n % PAIRS * 16, n / PAIRS * 16));
      },
      [&](int n, const four_matrices& b) {
        const int k = n / PAIRS * 2, c = n % PAIRS * 2;
#pragma unroll
        for (int m = 0; m < ROWS / 16; ++m) {
          const unsigned a[4] = {
              left.pairs[2 * m][k], left.pairs[2 * m + 1][k], left.pairs[2 * m][k + 1], left.pairs[2 * m + 1][k + 1]};
          multiply_16<T>(sum.fragments[m][c], a, b.words[0], b.words[1]);
          multiply_16<T>(sum.fragments[m][c + 1], a, b.words[2], b.words[3]);
        }
      });
  if constexpr (INNER % 16 != 0) {
    const shared_place rows = right.at(lane % 16, INNER - 8);
#pragma unroll
    for (int c = 0; c < COLUMNS; c += 16) {
      unsigned b[2];
      load_matrices<false>(b, rows + right.offset(c, 0));
#pragma unroll
      for (int m = 0; m < ROWS / 16; ++m) {
        const unsigned a[2] = {left.pairs[2 * m][INNER / 8 - 1], left.pairs[2 * m + 1][INNER / 8 - 1]};
        multiply_8<T>(sum.fragments[m][c / 8], a, b[0]);
        multiply_8<T>(sum.fragments[m][c / 8 + 1], a, b[1]);
      }
    }
  }
}

// multiply_add adds left · right to sum. It rounds the elements of left to T.
template <int ROWS, int INNER, int COLUMNS, int STRIDE, class T>
MLXG_INLINE void multiply_add(
    tile<ROWS, COLUMNS>& sum,
    const tile<ROWS, INNER>& left,
    const panel<T, INNER, COLUMNS, STRIDE>& right,
    unsigned lane) {
  unsigned a[INNER / 16][ROWS / 16][4];
#pragma unroll
  for (int k = 0; k < INNER / 16; ++k) {
#pragma unroll
    for (int m = 0; m < ROWS / 16; ++m) {
      const auto& f = left.fragments[m];
      a[k][m][0] = packed_pair<T>(f[2 * k][0], f[2 * k][1]);
      a[k][m][1] = packed_pair<T>(f[2 * k][2], f[2 * k][3]);
      a[k][m][2] = packed_pair<T>(f[2 * k + 1][0], f[2 * k + 1][1]);
      a[k][m][3] = packed_pair<T>(f[2 * k + 1][2], f[2 * k + 1][3]);
    }
  }
  // One load of four 8×8 matrices: inner indices 0 to 7 and 8 to 15 of eight columns, then of the next eight columns.
  const shared_place pairs = right.at(lane % 16, lane / 16 * 8);
  constexpr int PAIRS = COLUMNS / 16;
  prefetched<INNER / 16 * PAIRS, 4, four_matrices>(
      [&](int n, four_matrices& b) {
        load_matrices<true>(b.words, pairs + right.offset(n / PAIRS * 16, n % PAIRS * 16));
      },
      [&](int n, const four_matrices& b) {
        const int k = n / PAIRS, c = n % PAIRS * 2;
#pragma unroll
        for (int m = 0; m < ROWS / 16; ++m) {
          multiply_16<T>(sum.fragments[m][c], a[k][m], b.words[0], b.words[1]);
          multiply_16<T>(sum.fragments[m][c + 1], a[k][m], b.words[2], b.words[3]);
        }
      });
  if constexpr (COLUMNS % 16 != 0) {
#pragma unroll
    for (int k = 0; k < INNER / 16; ++k) {
      unsigned b[2];
      load_matrices<true>(b, pairs + right.offset(16 * k, COLUMNS - 8));
#pragma unroll
      for (int m = 0; m < ROWS / 16; ++m) {
        multiply_16<T>(sum.fragments[m][COLUMNS / 8 - 1], a[k][m], b[0], b[1]);
      }
    }
  }
}

// ---- products of floats ----

// tf32_of rounds a float to TF32. mma ignores the last 13 bits, so adding half of their range rounds. Infinity becomes
// NaN, as does the product of infinity and zero.
MLXG_INLINE unsigned tf32_of(float value) {
  return __builtin_bit_cast(unsigned, value) + 0x1000u;
}

// tf32_error returns the part of a float that TF32 loses. It has 13 bits, and mma uses 11 of them. Rounding it would
// double the time and gain one bit of a product, which the sums lose anyway.
MLXG_INLINE unsigned tf32_error(float value) {
  return __builtin_bit_cast(unsigned, value - __builtin_bit_cast(float, tf32_of(value) & 0xffffe000u));
}

// by_fma is whether floats are multiplied by fma, without mma: in launches with FMAProducts, and for matrices that are
// at most 16 wide, two fragments, as in MLX. With so few terms or columns, the errors of single products matter.
template <int WIDTH>
constexpr bool by_fma = MLXG_FMA || WIDTH <= 16;

// float_terms is the left-hand operand of a product of floats with K = 8, in TF32.
struct float_terms {
  unsigned high[4], low[4];

  MLXG_INLINE float_terms(float a0, float a1, float a2, float a3) {
    const float values[4] = {a0, a1, a2, a3};
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      high[i] = tf32_of(values[i]);
      // Without make_anew the compiler keeps both parts of an operand over all panels and runs out of registers.
      if (!MLXG_TF32) {
        make_anew(high[i]);
      }
      low[i] =
          MLXG_TF32 ? 0 : __builtin_bit_cast(unsigned, values[i] - __builtin_bit_cast(float, high[i] & 0xffffe000u));
    }
  }
  MLXG_INLINE void multiply(float (&c)[4], float b0, float b1) const {
    if (MLXG_TF32) {
      multiply_tf32(c, high, tf32_of(b0), tf32_of(b1));
    } else {
      // mma truncates its sums. The sum of all terms is added with rounding.
      float terms[4] = {};
      if (MLXG_FULL_SPLIT) {
        multiply_tf32(terms, low, tf32_error(b0), tf32_error(b1));
      }
      multiply_tf32(terms, low, tf32_of(b0), tf32_of(b1));
      multiply_tf32(terms, high, tf32_error(b0), tf32_error(b1));
      multiply_tf32(terms, high, tf32_of(b0), tf32_of(b1));
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        c[i] += terms[i];
      }
    }
  }
};

// float_products accumulates products of floats for WIDTH columns of a tile. TF32 products are added to the tile's
// elements one by one, because their rounding errors exceed that of a long sum. Exact products are summed separately
// for each panel, so the error of a long sum grows with the number of panels and not with the number of their rows.
template <int ROWS, int COLUMNS>
struct float_products {
  static constexpr int WIDTH = COLUMNS < 32 ? COLUMNS : 32, FRAGMENTS = WIDTH / 8;
  float fragments[ROWS / 16][FRAGMENTS][4] = {};

  MLXG_INLINE float_products(tile<ROWS, COLUMNS>& sum, int c) {
    if (MLXG_TF32) {
      each(sum, c, [](float& product, float element) { product = element; });
    }
  }

  MLXG_INLINE void add_to(tile<ROWS, COLUMNS>& sum, int c) {
    each(sum, c, [](float product, float& element) { element = MLXG_TF32 ? product : element + product; });
  }

 private:
  // each calls f with each accumulated product and the tile's element.
  template <class F>
  MLXG_INLINE void each(tile<ROWS, COLUMNS>& sum, int c, F f) {
#pragma unroll
    for (int m = 0; m < ROWS / 16; ++m)
#pragma unroll
      for (int n = 0; n < FRAGMENTS && c + 8 * n < COLUMNS; ++n)
#pragma unroll
        for (int e = 0; e < 4; ++e) {
          f(fragments[m][n][e], sum.fragments[m][c / 8 + n][e]);
        }
  }
};

// add_products adds the sums over k < INNER of left(i, k) · right(k, j). right(k, j, to) sets to[m][n] to the element
// at inner index k + m and the lane's column j + n. Groups of eight terms are summed separately, because the error of
// one running sum of 64 terms exceeds the error of cuBLAS.
template <int INNER, int ROWS, int COLUMNS, class Left, class Right>
MLXG_INLINE void add_products(tile<ROWS, COLUMNS>& sum, Left left, Right right) {
  constexpr int LANE_ROWS = tile<ROWS, COLUMNS>::LANE_ROWS, LANE_COLUMNS = tile<ROWS, COLUMNS>::LANE_COLUMNS;
  float products[LANE_ROWS][LANE_COLUMNS] = {};
#pragma unroll
  for (int first = 0; first < INNER; first += 8) {
    float eight[LANE_ROWS][LANE_COLUMNS] = {};
#pragma unroll
    for (int k = first; k < first + 8; k += 4) {
      float rows[LANE_ROWS][4];
#pragma unroll
      for (int i = 0; i < LANE_ROWS; ++i)
#pragma unroll
        for (int m = 0; m < 4; ++m) {
          rows[i][m] = left(i, k + m);
        }
#pragma unroll
      for (int j = 0; j < LANE_COLUMNS; j += 2) {
        float b[4][2];
        right(k, j, b);
#pragma unroll
        for (int m = 0; m < 4; ++m)
#pragma unroll
          for (int i = 0; i < LANE_ROWS; ++i)
#pragma unroll
            for (int n = 0; n < 2; ++n) {
              eight[i][j + n] += rows[i][m] * b[m][n];
            }
      }
    }
#pragma unroll
    for (int i = 0; i < LANE_ROWS; ++i)
#pragma unroll
      for (int j = 0; j < LANE_COLUMNS; ++j) {
        products[i][j] += eight[i][j];
      }
  }
#pragma unroll
  for (int i = 0; i < LANE_ROWS; ++i)
#pragma unroll
    for (int j = 0; j < LANE_COLUMNS; ++j) {
      sum.set(i, j, sum.get(i, j) + products[i][j]);
    }
}

template <int ROWS, int INNER, int COLUMNS, int STRIDE>
MLXG_INLINE void multiply_add_transposed(
    tile<ROWS, COLUMNS>& sum,
    const operand<float, ROWS, INNER>& left,
    const panel<float, COLUMNS, INNER, STRIDE>& right,
    unsigned lane) {
  if constexpr (by_fma<INNER>) {
    add_products<INNER>(
        sum,
        [&](int i, int k) {
          return metal::simd_shuffle(left.elements[i][k / 4], (unsigned short)(lane / 4 * 4 + k % 4));
        },
        [&](int k, int j, float (&to)[4][2]) {
#pragma unroll
          for (int n = 0; n < 2; ++n) {
            float terms[4];
            load_floats(terms, right.at(sum.column(j + n, lane), k));
#pragma unroll
            for (int m = 0; m < 4; ++m) {
              to[m][n] = terms[m];
            }
          }
        });
    return;
  }
  // One load of four matrices: inner indices 0 to 3 and 4 to 7 of eight columns, then of the next eight columns.
  const shared_place pairs = right.at(lane % 8 + lane / 16 * 8, lane / 8 % 2 * 4);
#pragma unroll
  for (int c = 0; c < COLUMNS; c += float_products<ROWS, COLUMNS>::WIDTH) {
    float_products<ROWS, COLUMNS> products(sum, c);
    constexpr int FRAGMENTS = float_products<ROWS, COLUMNS>::FRAGMENTS;
#pragma unroll
    for (int k = 0; k < INNER / 8; ++k) {
      four_matrices b[FRAGMENTS / 2];
#pragma unroll
      for (int n = 0; n < FRAGMENTS && c + 8 * n < COLUMNS; n += 2) {
        load_matrices<false>(b[n / 2].words, pairs + right.offset(c + 8 * n, 8 * k));
      }
#pragma unroll
      for (int m = 0; m < ROWS / 16; ++m) {
        const float_terms a(
            left.elements[2 * m][2 * k], left.elements[2 * m + 1][2 * k], left.elements[2 * m][2 * k + 1],
            left.elements[2 * m + 1][2 * k + 1]);
#pragma unroll
        for (int n = 0; n < FRAGMENTS && c + 8 * n < COLUMNS; ++n) {
          const unsigned* const words = b[n / 2].words + n % 2 * 2;
          a.multiply(
              products.fragments[m][n], __builtin_bit_cast(float, words[0]), __builtin_bit_cast(float, words[1]));
        }
      }
    }
    products.add_to(sum, c);
  }
}

// mma's inner indices k and k + 4 are the inner indices 2·k and 2·k + 1 here, because a lane of the left-hand tile
// holds both.
template <int ROWS, int INNER, int COLUMNS, int STRIDE>
MLXG_INLINE void multiply_add(
    tile<ROWS, COLUMNS>& sum,
    const tile<ROWS, INNER>& left,
    const panel<float, INNER, COLUMNS, STRIDE>& right,
    unsigned lane) {
  if constexpr (by_fma<COLUMNS>) {
    add_products<INNER>(
        sum,
        [&](int i, int k) {
          return metal::simd_shuffle(left.get(i, k / 8 * 2 + k % 2), (unsigned short)(lane / 4 * 4 + k % 8 / 2));
        },
        [&](int k, int j, float (&to)[4][2]) {
#pragma unroll
          for (int m = 0; m < 4; ++m) {
            load_floats(to[m], right.at(k + m, sum.column(j, lane)));
          }
        });
    return;
  }
  const shared_place own = right.at(lane % 4 * 2, lane / 4);
#pragma unroll
  for (int c = 0; c < COLUMNS; c += float_products<ROWS, COLUMNS>::WIDTH) {
    float_products<ROWS, COLUMNS> products(sum, c);
    constexpr int FRAGMENTS = float_products<ROWS, COLUMNS>::FRAGMENTS;
#pragma unroll
    for (int k = 0; k < INNER / 8; ++k) {
      float b[FRAGMENTS][2];
#pragma unroll
      for (int n = 0; n < FRAGMENTS && c + 8 * n < COLUMNS; ++n)
#pragma unroll
        for (int row = 0; row < 2; ++row) {
          b[n][row] = load_shared<float>(own + right.offset(8 * k + row, c + 8 * n));
        }
#pragma unroll
      for (int m = 0; m < ROWS / 16; ++m) {
        const auto& f = left.fragments[m][k];
        const float_terms a(f[0], f[2], f[1], f[3]);
#pragma unroll
        for (int n = 0; n < FRAGMENTS && c + 8 * n < COLUMNS; ++n) {
          a.multiply(products.fragments[m][n], b[n][0], b[n][1]);
        }
      }
    }
    products.add_to(sum, c);
  }
}

// ---- products of all types ----

// multiply_transposed computes left · rightᵀ.
template <int ROWS, int INNER, int COLUMNS, int STRIDE, class T>
MLXG_INLINE void multiply_transposed(
    tile<ROWS, COLUMNS>& product,
    const operand<T, ROWS, INNER>& left,
    const panel<T, COLUMNS, INNER, STRIDE>& right,
    unsigned lane) {
#pragma unroll
  for (int i = 0; i < product.LANE_ROWS; ++i)
#pragma unroll
    for (int j = 0; j < product.LANE_COLUMNS; ++j) {
      product.set(i, j, 0);
    }
  multiply_add_transposed(product, left, right, lane);
}

// finish has nothing to wait for: these products are complete when their functions return.
template <int PENDING, int ROWS, int COLUMNS>
MLXG_INLINE void finish(tile<ROWS, COLUMNS>&) {}

}  // namespace mlxg

#endif
