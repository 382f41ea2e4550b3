// The tiles and panels of tiles.h on the matrix units of an NVIDIA GPU: mma of 16 rows, 8
// columns and, of elements of 16 bits, 16 terms, which it adds up in float.
//
// A tile has the elements where mma leaves its result, in fragments of 8×8: a lane has two
// neighbouring columns of a row. Fragments of 16 bits are left operands as they are.
//
// Elements of 32 bits are multiplied as TF32, of 11 bits, or, with MLXG_TF32 = 0, as the sum
// of two of those: three products of four give a float's 24 bits but the last two. Narrow ones
// are multiplied as floats.
#ifndef METAL_TILES_H
#define METAL_TILES_H

#include "metal_mma.h"

namespace mlxg {

template <int M, int C>
struct tile {
  static_assert(M % 16 == 0 && C % 8 == 0, "a tile has whole fragments of 16 rows and 8 columns");
  enum { ROWS = M / 8, COLUMNS = C / 4 };
  // The bits of a lane's number in which those that share a row differ, and a column.
  enum { ROW_BIT_0 = 1, ROW_BIT_1 = 2, COLUMN_BIT_0 = 4, COLUMN_BIT_1 = 8, COLUMN_BIT_2 = 16 };
  float fragments[M / 16][C / 8][4];  // two columns of a row, and of the row eight below

  MLXG_INLINE static int row(int i, unsigned lane) { return 8 * i + int(lane / 4); }
  MLXG_INLINE static int column(int j, unsigned lane) { return 8 * (j / 2) + int(lane % 4 * 2) + j % 2; }
  MLXG_INLINE float get(int i, int j) const { return fragments[i / 2][j / 2][i % 2 * 2 + j % 2]; }
  MLXG_INLINE void set(int i, int j, float value) { fragments[i / 2][j / 2][i % 2 * 2 + j % 2] = value; }
};

// ---- products of floats ----

// A float rounded to TF32, whose unit does not look at the bits that follow: a half is added
// for them. Infinity becomes NaN, which a product of it with one of zeros is too.
MLXG_INLINE unsigned tf32_of(float value) {
  return __builtin_bit_cast(unsigned, value) + 0x1000u;
}

// What TF32 leaves of a float: 13 bits, of which the unit takes 11. Rounding them would take as long
// again and make a product better by a bit that the sums lose.
MLXG_INLINE unsigned tf32_error(float value) {
  return __builtin_bit_cast(unsigned, value - __builtin_bit_cast(float, tf32_of(value) & 0xffffe000u));
}

// Whether floats are multiplied as such, as MLX does it: what is as narrow as two fragments. The
// errors of so few terms, or columns, are those of single products.
template <int WIDTH>
constexpr bool narrow = WIDTH <= 16;

// The left operand of eight terms of floats, and the products with it.
struct float_terms {
  unsigned high[4], low[4];

  MLXG_INLINE float_terms(float a0, float a1, float a2, float a3) {
    const float values[4] = {a0, a1, a2, a3};
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      high[i] = tf32_of(values[i]);
      // An operand's parts would be kept over all panels, for which there are no registers.
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
      // mma cuts off what it adds up; the sum of all terms is added with rounding.
      float terms[4] = {};
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

// ---- panels ----

// R rows of C elements in shared memory, and the next R on their way to it where there is
// room. A row has an odd number of 16 bytes, so that eight rows' 16 bytes at a column lie in
// different banks.
template <class T, int R, int C, int ROW = C>
struct panel {
  enum {
    BYTES = C * sizeof(T) % 16 == 0 ? 16
    : C * sizeof(T) % 8 == 0        ? 8
                                    : 4,
    PACK = BYTES / sizeof(T)
  };  // copied at a time
  enum { STRIDE = BYTES == 16 ? (C / PACK | 1) * PACK : C, ELEMENTS = R * STRIDE };
  // A block has 48 KiB, for two large panels and a small one, or those of two parts and 8 KiB of tiles.
  enum { AHEAD = 2 * ELEMENTS * sizeof(T) <= (ROW == C ? 23 : 9) * 1024, SIZE = AHEAD ? 2 * ELEMENTS : ELEMENTS };
  static_assert(C % PACK == 0, "a panel's rows are whole packs");
  shared_place place;  // of this turn's rows
  shared_place both;   // the sum of it and of the next turn's
  const T* next;
  int next_rows;

  MLXG_INLINE void begin(T* to, const T* from, int rows, unsigned thread_index, unsigned threads) {
    const shared_place first = shared_address(to), last = first + (AHEAD ? ELEMENTS * sizeof(T) : 0);
    place = last;
    both = first + last;
    next = from;
    next_rows = rows;
    if (AHEAD) {
      copy(from, rows, thread_index, threads);
    }
  }

  MLXG_INLINE void turn(const T* from, int rows, unsigned thread_index, unsigned threads) {
    if (AHEAD) {
      place = both - place;
      copy(from, rows, thread_index, threads);
    } else {
      copy(next, next_rows, thread_index, threads);
      next = from;
      next_rows = rows;
    }
  }

  // Where an element lies.
  MLXG_INLINE shared_place at(unsigned row, unsigned column) const { return place + offset(row, column); }
  MLXG_INLINE static shared_place offset(unsigned row, unsigned column) {
    return (row * STRIDE + column) * unsigned(sizeof(T));
  }
  MLXG_INLINE float get(unsigned row, unsigned column) const { return float(load_shared<T>(at(row, column))); }
  MLXG_INLINE void get_row(unsigned row, float* to) const {
#pragma unroll
    for (int c = 0; c < C; ++c) {
      to[c] = get(row, c);
    }
  }

 private:
  // Begins to copy rows to the memory of the next turn.
  MLXG_INLINE void copy(const T* from, int rows, unsigned thread_index, unsigned threads) {
    if (rows <= 0) {
      return;
    }
    const shared_place to = both - place;
    if ((unsigned long long)from % BYTES != 0) {
      for (unsigned i = thread_index; i < R * C; i += threads) {
        store_shared(to + offset(i / C, i % C), int(i / C) < rows ? from[i / C * ROW + i % C] : T(0.0f));
      }
      return;
    }
    const unsigned packs = C / PACK;  // of a row
    if (threads % packs == 0) {
      // A thread copies the same columns of every so many rows.
      const unsigned row = thread_index / packs, column = thread_index % packs * PACK, apart = threads / packs;
      const shared_place first = to + offset(row, column);
      from += row * ROW + column;
#pragma unroll
      for (unsigned below = 0; below < R; below += apart) {
        if (R % apart == 0 || row + below < R) {
          copy_ahead<BYTES>(first + offset(below, 0), from + below * ROW, int(row + below) < rows);
        }
      }
    } else {
#pragma unroll
      for (unsigned first = 0; first < R * packs; first += threads) {
        const unsigned i = first + thread_index, row = i / packs, column = i % packs * PACK;
        if (i < R * packs) {
          copy_ahead<BYTES>(to + offset(row, column), from + row * ROW + column, int(row) < rows);
        }
      }
    }
  }
};

// Where what was copied ahead has arrived, and the last turn is over.
template <class... Panels>
MLXG_INLINE void wait(const Panels&...) {
  wait_for_copies();
}
// Where the rest has arrived.
template <class... Panels>
MLXG_INLINE void ready(const Panels&...) {
  if constexpr (!(Panels::AHEAD && ...)) {
    wait_for_copies();
  }
}

// ---- left operands from device memory ----

// M rows of K elements, kept as mma takes them.
template <class T, int M, int K>
struct operand {
  unsigned pairs[M / 8][K / 8];

  MLXG_INLINE void load(const T* from, int apart, int rows, unsigned lane) {
    const bool aligned = (unsigned long long)from % 4 == 0;
#pragma unroll
    for (int i = 0; i < M / 8; ++i) {
      const int row = 8 * i + int(lane / 4);
      const T* const p = from + size_t(row) * apart + lane % 4 * 2;
#pragma unroll
      for (int j = 0; j < K / 8; ++j) {
        unsigned pair = 0;
        if (row < rows) {
          if (aligned) {
            pair = *reinterpret_cast<const unsigned*>(p + 8 * j);
          } else {
            pair = __builtin_bit_cast(unsigned short, p[8 * j]) |
                   unsigned(__builtin_bit_cast(unsigned short, p[8 * j + 1])) << 16;
          }
        }
        pairs[i][j] = pair;
      }
    }
  }
};

// Of floats a lane has columns that lie four apart, as ldmatrix loads those of a panel.
template <int M, int K>
struct operand<float, M, K> {
  float elements[M / 8][K / 4];

  MLXG_INLINE void load(const float* from, int apart, int rows, unsigned lane) {
#pragma unroll
    for (int i = 0; i < M / 8; ++i) {
      const int row = 8 * i + int(lane / 4);
#pragma unroll
      for (int j = 0; j < K / 4; ++j) {
        elements[i][j] = row < rows ? from[size_t(row) * apart + 4 * j + lane % 4] : 0.0f;
      }
    }
  }
};

// ---- sums of products ----

// Calls multiply(n, b) for n < STEPS with what load(n, b) has loaded into b, DISTANCE steps
// before: a product would else wait for its operand.
template <int STEPS, int DISTANCE, class Operands, class Load, class Multiply>
MLXG_INLINE void loaded_ahead(Load load, Multiply multiply) {
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
// What a load of four matrices leaves.
struct four_matrices {
  unsigned words[4];
};

// Adds the product of a left operand and a panel of C rows of K elements, transposed.
template <int M, int K, int C, int ROW, class T>
MLXG_INLINE void multiply_add_transposed(
    tile<M, C>& sum, const operand<T, M, K>& left, const panel<T, C, K, ROW>& right, unsigned lane) {
  // Eight terms in columns c, the next eight, and both in columns c + 8.
  const shared_place pairs = right.at(lane % 8 + lane / 16 * 8, lane / 8 % 2 * 8);
  constexpr int PAIRS = C / 16;
  loaded_ahead<K / 16 * PAIRS, 4, four_matrices>(
      [&](int n, four_matrices& b) {
        load_matrices<false>(b.words, pairs + right.offset(n % PAIRS * 16, n / PAIRS * 16));
      },
      [&](int n, const four_matrices& b) {
        const int k = n / PAIRS * 2, c = n % PAIRS * 2;
#pragma unroll
        for (int m = 0; m < M / 16; ++m) {
          const unsigned a[4] = {
              left.pairs[2 * m][k], left.pairs[2 * m + 1][k], left.pairs[2 * m][k + 1], left.pairs[2 * m + 1][k + 1]};
          multiply_16<T>(sum.fragments[m][c], a, b.words[0], b.words[1]);
          multiply_16<T>(sum.fragments[m][c + 1], a, b.words[2], b.words[3]);
        }
      });
  if constexpr (K % 16 != 0) {
    const shared_place rows = right.at(lane % 16, K - 8);
#pragma unroll
    for (int c = 0; c < C; c += 16) {
      unsigned b[2];
      load_matrices<false>(b, rows + right.offset(c, 0));
#pragma unroll
      for (int m = 0; m < M / 16; ++m) {
        const unsigned a[2] = {left.pairs[2 * m][K / 8 - 1], left.pairs[2 * m + 1][K / 8 - 1]};
        multiply_8<T>(sum.fragments[m][c / 8], a, b[0]);
        multiply_8<T>(sum.fragments[m][c / 8 + 1], a, b[1]);
      }
    }
  }
}

// Adds the product of a tile, rounded to T, and a panel of K rows of C elements.
template <int M, int K, int C, int ROW, class T>
MLXG_INLINE void multiply_add(
    tile<M, C>& sum, const tile<M, K>& left, const panel<T, K, C, ROW>& right, unsigned lane) {
  unsigned a[K / 16][M / 16][4];
#pragma unroll
  for (int k = 0; k < K / 16; ++k) {
#pragma unroll
    for (int m = 0; m < M / 16; ++m) {
      const auto& f = left.fragments[m];
      a[k][m][0] = packed_pair<T>(f[2 * k][0], f[2 * k][1]);
      a[k][m][1] = packed_pair<T>(f[2 * k][2], f[2 * k][3]);
      a[k][m][2] = packed_pair<T>(f[2 * k + 1][0], f[2 * k + 1][1]);
      a[k][m][3] = packed_pair<T>(f[2 * k + 1][2], f[2 * k + 1][3]);
    }
  }
  // Eight terms in columns c, the next eight, and both in columns c + 8.
  const shared_place pairs = right.at(lane % 16, lane / 16 * 8);
  constexpr int PAIRS = C / 16;
  loaded_ahead<K / 16 * PAIRS, 4, four_matrices>(
      [&](int n, four_matrices& b) {
        load_matrices<true>(b.words, pairs + right.offset(n / PAIRS * 16, n % PAIRS * 16));
      },
      [&](int n, const four_matrices& b) {
        const int k = n / PAIRS, c = n % PAIRS * 2;
#pragma unroll
        for (int m = 0; m < M / 16; ++m) {
          multiply_16<T>(sum.fragments[m][c], a[k][m], b.words[0], b.words[1]);
          multiply_16<T>(sum.fragments[m][c + 1], a[k][m], b.words[2], b.words[3]);
        }
      });
  if constexpr (C % 16 != 0) {
#pragma unroll
    for (int k = 0; k < K / 16; ++k) {
      unsigned b[2];
      load_matrices<true>(b, pairs + right.offset(16 * k, C - 8));
#pragma unroll
      for (int m = 0; m < M / 16; ++m) {
        multiply_16<T>(sum.fragments[m][C / 8 - 1], a[k][m], b[0], b[1]);
      }
    }
  }
}

// Products of floats are added up on their own, so that the errors of a long sum grow with
// the number of panels and not of their rows: so many columns at a time.
template <int M, int C>
struct float_products {
  enum { WIDTH = C < 32 ? C : 32, FRAGMENTS = WIDTH / 8 };
  float fragments[M / 16][FRAGMENTS][4] = {};

  MLXG_INLINE void add_to(tile<M, C>& sum, int c) const {
#pragma unroll
    for (int m = 0; m < M / 16; ++m)
#pragma unroll
      for (int n = 0; n < FRAGMENTS && c + 8 * n < C; ++n)
#pragma unroll
        for (int e = 0; e < 4; ++e) {
          sum.fragments[m][c / 8 + n][e] += fragments[m][n][e];
        }
  }
};

// Adds sums of K products of what left(i, k) and right(k, j) give. Eight are added up on their own: 64
// in a row lose more than cuBLAS does.
template <int K, int M, int C, class Left, class Right>
MLXG_INLINE void add_products(tile<M, C>& sum, Left left, Right right) {
  constexpr int ROWS = tile<M, C>::ROWS, COLUMNS = tile<M, C>::COLUMNS;
  float products[ROWS][COLUMNS] = {};
#pragma unroll
  for (int first = 0; first < K; first += 8) {
    float eight[ROWS][COLUMNS] = {};
#pragma unroll
    for (int k = first; k < first + 8 && k < K; ++k) {
      float row[ROWS];
#pragma unroll
      for (int i = 0; i < ROWS; ++i) {
        row[i] = left(i, k);
      }
#pragma unroll
      for (int j = 0; j < COLUMNS; ++j) {
        const float b = right(k, j);
#pragma unroll
        for (int i = 0; i < ROWS; ++i) {
          eight[i][j] += row[i] * b;
        }
      }
    }
#pragma unroll
    for (int i = 0; i < ROWS; ++i)
#pragma unroll
      for (int j = 0; j < COLUMNS; ++j) {
        products[i][j] += eight[i][j];
      }
  }
#pragma unroll
  for (int i = 0; i < ROWS; ++i)
#pragma unroll
    for (int j = 0; j < COLUMNS; ++j) {
      sum.set(i, j, sum.get(i, j) + products[i][j]);
    }
}

template <int M, int K, int C, int ROW>
MLXG_INLINE void multiply_add_transposed(
    tile<M, C>& sum, const operand<float, M, K>& left, const panel<float, C, K, ROW>& right, unsigned lane) {
  if constexpr (narrow<K>) {
    add_products<K>(
        sum,
        [&](int i, int k) {
          return metal::simd_shuffle(left.elements[i][k / 4], (unsigned short)(lane / 4 * 4 + k % 4));
        },
        [&](int k, int j) { return right.get(sum.column(j, lane), k); });
    return;
  }
  // Four terms in columns c, the next four, and both in columns c + 8.
  const shared_place pairs = right.at(lane % 8 + lane / 16 * 8, lane / 8 % 2 * 4);
#pragma unroll
  for (int c = 0; c < C; c += float_products<M, C>::WIDTH) {
    float_products<M, C> products;
    constexpr int FRAGMENTS = float_products<M, C>::FRAGMENTS;
    struct operands {
      four_matrices pair[FRAGMENTS / 2];
    };
    loaded_ahead<K / 8, 2, operands>(
        [&](int k, operands& b) {
#pragma unroll
          for (int n = 0; n < FRAGMENTS && c + 8 * n < C; n += 2)
            load_matrices<false>(b.pair[n / 2].words, pairs + right.offset(c + 8 * n, 8 * k));
        },
        [&](int k, const operands& b) {
#pragma unroll
          for (int m = 0; m < M / 16; ++m) {
            const float_terms a(
                left.elements[2 * m][2 * k], left.elements[2 * m + 1][2 * k], left.elements[2 * m][2 * k + 1],
                left.elements[2 * m + 1][2 * k + 1]);
#pragma unroll
            for (int n = 0; n < FRAGMENTS && c + 8 * n < C; ++n)
              a.multiply(
                  products.fragments[m][n], __builtin_bit_cast(float, b.pair[n / 2].words[n % 2 * 2]),
                  __builtin_bit_cast(float, b.pair[n / 2].words[n % 2 * 2 + 1]));
          }
        });
    products.add_to(sum, c);
  }
}

// mma's terms k and k + 4 are here 2·k and 2·k + 1, which a lane of the left tile has.
template <int M, int K, int C, int ROW>
MLXG_INLINE void multiply_add(
    tile<M, C>& sum, const tile<M, K>& left, const panel<float, K, C, ROW>& right, unsigned lane) {
  if constexpr (narrow<C>) {
    add_products<K>(
        sum,
        [&](int i, int k) {
          return metal::simd_shuffle(left.get(i, k / 8 * 2 + k % 2), (unsigned short)(lane / 4 * 4 + k % 8 / 2));
        },
        [&](int k, int j) { return right.get(k, sum.column(j, lane)); });
    return;
  }
  const shared_place own = right.at(lane % 4 * 2, lane / 4);
#pragma unroll
  for (int c = 0; c < C; c += float_products<M, C>::WIDTH) {
    float_products<M, C> products;
    constexpr int FRAGMENTS = float_products<M, C>::FRAGMENTS;
    struct operands {
      float rows[FRAGMENTS][2];
    };
    loaded_ahead<K / 8, 2, operands>(
        [&](int k, operands& b) {
#pragma unroll
          for (int n = 0; n < FRAGMENTS && c + 8 * n < C; ++n)
#pragma unroll
            for (int row = 0; row < 2; ++row)
              b.rows[n][row] = load_shared<float>(own + right.offset(8 * k + row, c + 8 * n));
        },
        [&](int k, const operands& b) {
#pragma unroll
          for (int m = 0; m < M / 16; ++m) {
            const auto& f = left.fragments[m][k];
            const float_terms a(f[0], f[2], f[1], f[3]);
#pragma unroll
            for (int n = 0; n < FRAGMENTS && c + 8 * n < C; ++n)
              a.multiply(products.fragments[m][n], b.rows[n][0], b.rows[n][1]);
          }
        });
    products.add_to(sum, c);
  }
}

}  // namespace mlxg

#endif
