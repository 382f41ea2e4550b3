// Tiles of matrices that one simdgroup computes with, in float, and panels that its
// threadgroup shares.
//
// A tile of M×C elements is spread over LANES lanes. A lane holds those at the rows
// row(i), i < ROWS, and the columns column(j), j < COLUMNS, and reaches them with get and
// set: a text that uses no more than that is right for every spread.
//
//   LANES = 32   fragments of 8×8, simdgroup_matrix, whose lanes own two neighbouring
//                columns of a row each, in the layout that MLX's own kernels rely on; a device
//                with matrix units of another shape brings tiles and panels for them, which
//                may round a left tile to T
//   LANES = 1    everything is one lane's: plain loops, for a processor's vectors
//
// The right factor of a product is a panel, R rows of C elements of T. With 32 lanes it lies
// in threadgroup memory, with one it stays where it is. It walks over rows in turns: begin says
// where the first rows are, turn has those that were said last and says where the next are,
// which a device may fetch ahead; what is used of the last turn ends before wait, and what is
// used of this one begins behind ready. The left factor is a tile or, where the panel is read
// transposed, an operand: rows of T that came from device memory. Rows of device memory are
// zeros from their number on. A panel's rows may be of wider ones, ROW elements apart; its threads
// are those that it is told of.

#include "rows.h"
#include <metal_simdgroup_matrix>

#define TILES_UNROLL _Pragma("clang loop unroll(full)")

template <int LANES, int M, int C>
struct Tile;

template <int LANES, typename T, int R, int C, int ROW = C>
struct Panel;

template <int LANES, typename T, int M, int K>
struct Operand {
  Tile<LANES, M, K> tile;
};

#ifdef METAL_TILES_H  // of the CUDA executor

template <int M, int C>
struct Tile<32, M, C> : mlxg::tile<M, C> {};

template <typename T, int R, int C, int ROW>
struct Panel<32, T, R, C, ROW> : mlxg::panel<T, R, C, ROW> {};

template <typename T, int R, int C, int W, int ROW, int ROW_W>
inline void wait(thread Panel<32, T, R, C, ROW>& one, thread Panel<32, T, R, W, ROW_W>& other) {
  mlxg::wait(one, other);
}

template <typename T, int R, int C, int W, int ROW, int ROW_W>
inline void ready(thread Panel<32, T, R, C, ROW>& one, thread Panel<32, T, R, W, ROW_W>& other) {
  mlxg::ready(one, other);
}

template <typename T, int R, int C>
inline void wait(thread Panel<32, T, R, C>& panel) {
  mlxg::wait(panel);
}

template <typename T, int R, int C>
inline void ready(thread Panel<32, T, R, C>& panel) {
  mlxg::ready(panel);
}

template <typename T, int M, int K>
struct Operand<32, T, M, K> : mlxg::operand<T, M, K> {};

template <typename T, int M, int K>
inline void load(thread Operand<32, T, M, K>& left, device const T* from, int apart, int rows, uint lane) {
  left.load(from, apart, rows, lane);
}

template <int M, int K, int C, int ROW, typename T>
inline void multiply_add(
    thread Tile<32, M, C>& sum, thread Tile<32, M, K>& left, thread const Panel<32, T, K, C, ROW>& panel, uint lane) {
  mlxg::multiply_add(sum, left, panel, lane);
}

template <int M, int K, int C, int ROW, typename T>
inline void multiply_add_transposed(
    thread Tile<32, M, C>& sum, thread Operand<32, T, M, K>& left, thread const Panel<32, T, C, K, ROW>& panel, uint lane) {
  mlxg::multiply_add_transposed(sum, left, panel, lane);
}

#else

template <int M, int C>
struct Tile<32, M, C> {
  enum { ROWS = M / 8, COLUMNS = C / 4 };
  // The bits of a lane's number in which those that share a row differ, and a column.
  enum { ROW_BIT_0 = 1, ROW_BIT_1 = 8, COLUMN_BIT_0 = 2, COLUMN_BIT_1 = 4, COLUMN_BIT_2 = 16 };
  simdgroup_matrix<float, 8, 8> fragments[M / 8][C / 8];

  static int row(int i, uint lane) {
    return 8 * i + int((lane / 4 & 4) + lane / 2 % 4);
  }
  static int column(int j, uint lane) {
    return 8 * (j / 2) + int((lane / 4 & 2) * 2 + lane % 2 * 2) + j % 2;
  }
  float get(int i, int j) {
    return fragments[i][j / 2].thread_elements()[j % 2];
  }
  void set(int i, int j, float value) {
    fragments[i][j / 2].thread_elements()[j % 2] = value;
  }
};

template <typename T, int R, int C, int ROW>
struct Panel<32, T, R, C, ROW> {
  enum { SIZE = R * C };  // of its memory
  threadgroup T* memory;
  device const T* next;
  int next_rows;

  void begin(threadgroup T* to, device const T* from, int rows, uint, uint) {
    memory = to;
    next = from;
    next_rows = rows;
  }

  void turn(device const T* from, int rows, uint thread_index, uint threads) {
    const int pack = C % 8 == 0 ? 8 : 1;
    const bool is_packed = vec_aligned<pack>(next, ROW);
    for (uint i = thread_index * pack; i < R * C; i += threads * pack) {
      T values[pack];
      if (int(i / C) < next_rows) {
        load_vec<pack>(next + i / C * ROW, i % C, C, is_packed, values);
      } else {
        for (int k = 0; k < pack; k++) {
          values[k] = T(0);
        }
      }
      for (int k = 0; k < pack; k++) {
        memory[i + k] = values[k];
      }
    }
    next = from;
    next_rows = rows;
  }

  void get_row(int row, thread float* to) const {
    for (int c = 0; c < C; c++) {
      to[c] = float(memory[row * C + c]);
    }
  }
};

template <typename T, int R, int C, int W, int ROW, int ROW_W>
inline void wait(thread Panel<32, T, R, C, ROW>&, thread Panel<32, T, R, W, ROW_W>&) {
  threadgroup_barrier(mem_flags::mem_threadgroup);
}

template <typename T, int R, int C, int W, int ROW, int ROW_W>
inline void ready(thread Panel<32, T, R, C, ROW>&, thread Panel<32, T, R, W, ROW_W>&) {
  threadgroup_barrier(mem_flags::mem_threadgroup);
}

template <typename T, int R, int C>
inline void wait(thread Panel<32, T, R, C>&) {
  threadgroup_barrier(mem_flags::mem_threadgroup);
}

template <typename T, int R, int C>
inline void ready(thread Panel<32, T, R, C>&) {
  threadgroup_barrier(mem_flags::mem_threadgroup);
}

template <bool TRANSPOSED, int M, int K, int C, typename T, int R, int W, int ROW>
inline void add_product(
    thread Tile<32, M, C>& sum, thread Tile<32, M, K>& left, thread const Panel<32, T, R, W, ROW>& panel, uint lane) {
  const int row = sum.row(0, lane);
  const int column = sum.column(0, lane);
  for (int c = 0; c < C; c += 8) {
    simdgroup_matrix<float, 8, 8> products[M / 8];
    for (int m = 0; m < M / 8; m++) {
      products[m] = make_filled_simdgroup_matrix<float, 8, 8>(0);
    }
    for (int k = 0; k < K; k += 8) {
      simdgroup_matrix<float, 8, 8> right;
      for (int e = 0; e < 2; e++) {
        const int r = TRANSPOSED ? c + column + e : k + row;
        const int s = TRANSPOSED ? k + row : c + column + e;
        right.thread_elements()[e] = float(panel.memory[r * W + s]);
      }
      for (int m = 0; m < M / 8; m++) {
        simdgroup_multiply_accumulate(products[m], left.fragments[m][k / 8], right, products[m]);
      }
    }
    for (int m = 0; m < M / 8; m++) {
      for (int e = 0; e < 2; e++) {
        sum.fragments[m][c / 8].thread_elements()[e] += products[m].thread_elements()[e];
      }
    }
  }
}

#endif

template <int M, int C>
struct Tile<1, M, C> {
  enum { ROWS = M, COLUMNS = C };
  float elements[M][C];

  static int row(int i, uint) {
    return i;
  }
  static int column(int j, uint) {
    return j;
  }
  float get(int i, int j) {
    return elements[i][j];
  }
  void set(int i, int j, float value) {
    elements[i][j] = value;
  }
};

template <typename T, int R, int C, int ROW>
struct Panel<1, T, R, C, ROW> {
  enum { SIZE = 1 };
  device const T* rows;
  int count;
  device const T* next;
  int next_rows;

  void begin(threadgroup T*, device const T* from, int number, uint, uint) {
    next = from;
    next_rows = number;
  }

  void turn(device const T* from, int number, uint, uint) {
    rows = next;
    count = next_rows;
    next = from;
    next_rows = number;
  }

  void get_row(int row, thread float* to) const {
    for (int c = 0; c < C; c++) {
      to[c] = row < count ? float(rows[row * ROW + c]) : 0.0f;
    }
  }
};

template <typename T, int R, int C, int W, int ROW, int ROW_W>
inline void wait(thread Panel<1, T, R, C, ROW>&, thread Panel<1, T, R, W, ROW_W>&) {
}

template <typename T, int R, int C, int W, int ROW, int ROW_W>
inline void ready(thread Panel<1, T, R, C, ROW>&, thread Panel<1, T, R, W, ROW_W>&) {
}

template <typename T, int R, int C>
inline void wait(thread Panel<1, T, R, C>&) {
}

template <typename T, int R, int C>
inline void ready(thread Panel<1, T, R, C>&) {
}

// Eight rows by eight columns of the product stay in registers over all of K, and eight
// columns of the panel, as floats, in a cache over all rows.
template <bool TRANSPOSED, int M, int K, int C, typename T, int R, int W, int ROW>
inline void add_product(
    thread Tile<1, M, C>& sum, thread Tile<1, M, K>& left, thread const Panel<1, T, R, W, ROW>& panel, uint) {
  for (int c = 0; c < C; c += 8) {
    float right[K][8];
    if (TRANSPOSED) {
      for (int j = 0; j < 8; j++) {
        device const T* const row = panel.rows + size_t(c + j) * ROW;
        for (int k = 0; k < K; k++) {
          right[k][j] = c + j < panel.count ? float(row[k]) : 0.0f;
        }
      }
    } else {
      for (int k = 0; k < K; k++) {
        device const T* const row = panel.rows + size_t(k) * ROW + c;
        for (int j = 0; j < 8; j++) {
          right[k][j] = k < panel.count ? float(row[j]) : 0.0f;
        }
      }
    }
    // Rows of 8 in 16 places: side by side, g++ takes two for one vector, and then finds no
    // registers for them.
    float products[M][16];
    for (int m = 0; m < M; m += 8) {
      float block[8][8];
      TILES_UNROLL for (int i = 0; i < 8; i++) {
        TILES_UNROLL for (int j = 0; j < 8; j++) {
          block[i][j] = 0;
        }
      }
      for (int k = 0; k < K; k++) {
        TILES_UNROLL for (int i = 0; i < 8; i++) {
          TILES_UNROLL for (int j = 0; j < 8; j++) {
            block[i][j] = fma(left.elements[m + i][k], right[k][j], block[i][j]);
          }
        }
      }
      TILES_UNROLL for (int i = 0; i < 8; i++) {
        TILES_UNROLL for (int j = 0; j < 8; j++) {
          products[m + i][j] = block[i][j];
        }
      }
    }
    // In a loop of its own, for the same reason.
    for (int m = 0; m < M; m++) {
      for (int j = 0; j < 8; j++) {
        sum.elements[m][c + j] += products[m][j];
      }
    }
  }
}

// multiply_add adds the product of a tile and a panel to a sum, multiply_add_transposed that
// of an operand and a panel of C rows of K elements, which is read as K rows of C. The
// product is added up on its own, so that the errors of a long sum grow with the number of
// panels and not of their rows.

template <int LANES, int M, int K, int C, int ROW, typename T>
inline void multiply_add(
    thread Tile<LANES, M, C>& sum,
    thread Tile<LANES, M, K>& left,
    thread const Panel<LANES, T, K, C, ROW>& panel,
    uint lane) {
  add_product<false>(sum, left, panel, lane);
}

template <int LANES, int M, int K, int C, int ROW, typename T>
inline void multiply_add_transposed(
    thread Tile<LANES, M, C>& sum,
    thread Operand<LANES, T, M, K>& left,
    thread const Panel<LANES, T, C, K, ROW>& panel,
    uint lane) {
  add_product<true>(sum, left.tile, panel, lane);
}

template <int LANES, int M, int C>
inline void fill(thread Tile<LANES, M, C>& tile, float value) {
  for (int i = 0; i < Tile<LANES, M, C>::ROWS; i++) {
    for (int j = 0; j < Tile<LANES, M, C>::COLUMNS; j++) {
      tile.set(i, j, value);
    }
  }
}

// Reads a tile from rows of device memory that are so many elements apart.
template <int LANES, int M, int C, typename T>
inline void load(thread Tile<LANES, M, C>& tile, device const T* from, int apart, int rows, uint lane) {
  for (int i = 0; i < Tile<LANES, M, C>::ROWS; i++) {
    const int row = tile.row(i, lane);
    device const T* const p = from + size_t(row) * apart;
    if (row < rows) {
      for (int j = 0; j < Tile<LANES, M, C>::COLUMNS; j++) {
        tile.set(i, j, float(p[tile.column(j, lane)]));
      }
    } else {
      for (int j = 0; j < Tile<LANES, M, C>::COLUMNS; j++) {
        tile.set(i, j, 0);
      }
    }
  }
}

template <int LANES, typename T, int M, int K>
inline void load(thread Operand<LANES, T, M, K>& left, device const T* from, int apart, int rows, uint lane) {
  load(left.tile, from, apart, rows, lane);
}

// Writes a tile to such rows.
template <int LANES, int M, int C, typename T>
inline void store(thread Tile<LANES, M, C>& tile, device T* to, int apart, int rows, uint lane) {
  for (int i = 0; i < Tile<LANES, M, C>::ROWS; i++) {
    const int row = tile.row(i, lane);
    device T* const p = to + size_t(row) * apart;
    if (row < rows) {
      for (int j = 0; j < Tile<LANES, M, C>::COLUMNS; j++) {
        p[tile.column(j, lane)] = T(tile.get(i, j));
      }
    }
  }
}

template <int LANES, int M, int C>
inline void multiply(thread Tile<LANES, M, C>& tile, float factor) {
  for (int i = 0; i < Tile<LANES, M, C>::ROWS; i++) {
    for (int j = 0; j < Tile<LANES, M, C>::COLUMNS; j++) {
      tile.set(i, j, tile.get(i, j) * factor);
    }
  }
}

// Multiplies the lane's rows by factors of their own.
template <int LANES, int M, int C>
inline void multiply_rows(thread Tile<LANES, M, C>& tile, thread const float* factors) {
  for (int i = 0; i < Tile<LANES, M, C>::ROWS; i++) {
    for (int j = 0; j < Tile<LANES, M, C>::COLUMNS; j++) {
      tile.set(i, j, tile.get(i, j) * factors[i]);
    }
  }
}

// Divides the lane's rows.
template <int LANES, int M, int C>
inline void divide_rows(thread Tile<LANES, M, C>& tile, thread const float* divisors) {
  for (int i = 0; i < Tile<LANES, M, C>::ROWS; i++) {
    for (int j = 0; j < Tile<LANES, M, C>::COLUMNS; j++) {
      tile.set(i, j, tile.get(i, j) / divisors[i]);
    }
  }
}

// The largest element and the sum of each row, for the lane's rows.
template <int M, int C>
inline void row_max(thread Tile<32, M, C>& tile, thread float* most) {
  for (int i = 0; i < Tile<32, M, C>::ROWS; i++) {
    float value = tile.get(i, 0);
    for (int j = 1; j < Tile<32, M, C>::COLUMNS; j++) {
      value = max(value, tile.get(i, j));
    }
    value = max(value, simd_shuffle_xor(value, tile.ROW_BIT_0));
    most[i] = max(value, simd_shuffle_xor(value, tile.ROW_BIT_1));
  }
}

template <int M, int C>
inline void row_max(thread Tile<1, M, C>& tile, thread float* most) {
  for (int i = 0; i < M; i++) {
    float parts[8];
    for (int k = 0; k < 8; k++) {
      parts[k] = tile.elements[i][k];
    }
    for (int j = 8; j < C; j += 8) {
      for (int k = 0; k < 8; k++) {
        parts[k] = max(parts[k], tile.elements[i][j + k]);
      }
    }
    most[i] = parts[0];
    for (int k = 1; k < 8; k++) {
      most[i] = max(most[i], parts[k]);
    }
  }
}

template <int M, int C>
inline void row_sum(thread Tile<32, M, C>& tile, thread float* sums) {
  for (int i = 0; i < Tile<32, M, C>::ROWS; i++) {
    float value = 0;
    for (int j = 0; j < Tile<32, M, C>::COLUMNS; j++) {
      value += tile.get(i, j);
    }
    value += simd_shuffle_xor(value, tile.ROW_BIT_0);
    sums[i] = value + simd_shuffle_xor(value, tile.ROW_BIT_1);
  }
}

template <int M, int C>
inline void row_sum(thread Tile<1, M, C>& tile, thread float* sums) {
  for (int i = 0; i < M; i++) {
    float parts[8] = {};
    for (int j = 0; j < C; j += 8) {
      for (int k = 0; k < 8; k++) {
        parts[k] += tile.elements[i][j + k];
      }
    }
    sums[i] = pairwise_sum<8>(parts);
  }
}

// The sum of each column, for the lane's columns.
template <int M, int C>
inline void column_sum(thread Tile<32, M, C>& tile, thread float* sums) {
  for (int j = 0; j < Tile<32, M, C>::COLUMNS; j++) {
    float value = 0;
    for (int i = 0; i < Tile<32, M, C>::ROWS; i++) {
      value += tile.get(i, j);
    }
    value += simd_shuffle_xor(value, tile.COLUMN_BIT_0);
    value += simd_shuffle_xor(value, tile.COLUMN_BIT_1);
    sums[j] = value + simd_shuffle_xor(value, tile.COLUMN_BIT_2);
  }
}

template <int M, int C>
inline void column_sum(thread Tile<1, M, C>& tile, thread float* sums) {
  for (int j = 0; j < C; j++) {
    sums[j] = 0;
  }
  for (int i = 0; i < M; i++) {
    for (int j = 0; j < C; j++) {
      sums[j] += tile.elements[i][j];
    }
  }
}
