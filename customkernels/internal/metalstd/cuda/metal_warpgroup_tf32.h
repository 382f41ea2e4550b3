// The panels, left-hand operands and products of shaders/tiles.h for a warpgroup and floats, which are multiplied as
// TF32 by the instructions of metal_wgmma_tf32.h.
//
// wgmma requires rows along K of both operands. For multiply_add, a panel is therefore transposed in shared memory.
#ifndef METAL_WARPGROUP_TF32_H
#define METAL_WARPGROUP_TF32_H

#include "metal_tiles.h"
#include "metal_warpgroup.h"
#include "metal_wgmma_tf32.h"

namespace mlxg {

// A float_matrix is a matrix of floats in shared memory, in parts of 32 columns with the layout of matrix_descriptor.
template <int ROWS, int COLUMNS>
struct float_matrix {
  static_assert(ROWS % 8 == 0 && COLUMNS % 32 == 0, "a matrix has whole parts of 32 columns");
  static constexpr unsigned PART_BYTES = ROWS * 128, BYTES = ROWS * COLUMNS * 4;

  // offset returns the distance in bytes of an element from the first one.
  MLXG_INLINE static unsigned offset(unsigned row, unsigned column) {
    return column / 32 * PART_BYTES + row * 128 + (column % 32 / 4 ^ row % 8) * 16 + column % 4 * 4;
  }

  // terms returns a function of k: the descriptor of the columns 8·k to 8·k + 7.
  MLXG_INLINE static auto terms(shared_place at) {
    const matrix_descriptor whole = describe(at, 0);
    return [whole](int k) { return whole.after(k / 4 * PART_BYTES + k % 4 * 32); };
  }
};

// A warpgroup_float_panel holds ROWS × COLUMNS floats in two buffers in shared memory, each aligned to 1024 bytes.
// advance rounds the current tile to TF32. If ADDS, a third buffer has the transposed tile for multiply_add. If
// MULTIPLIES, the current tile is an operand of multiply_transposed.
template <int ROWS, int COLUMNS, int STRIDE, bool ADDS, bool MULTIPLIES>
struct warpgroup_float_panel {
  typedef float_matrix<ROWS, COLUMNS> natural;
  typedef float_matrix<COLUMNS, ROWS> transposed;
  static constexpr bool PREFETCHES = false;
  static constexpr int ELEMENTS = ROWS * COLUMNS, SIZE = (ADDS ? 3 : 2) * ELEMENTS;
  shared_place first;    // the first buffer
  shared_place current;  // the buffer of the current tile

  MLXG_INLINE static void synchronize() { wait_for_copies(); }
  MLXG_INLINE static void publish() { publish_stores(); }

  MLXG_INLINE void init(float* to, const float* from, int rows, unsigned thread_index, unsigned threads) {
    first = shared_address(to);
    current = first + natural::BYTES;
    copy(first, from, rows, thread_index, threads);
  }

  MLXG_INLINE void advance(const float* from, int rows, unsigned thread_index, unsigned threads) {
    const shared_place next = current;
    current = 2 * first + natural::BYTES - current;
    copy(next, from, rows, thread_index, threads);
    round(thread_index, threads);
  }

  MLXG_INLINE shared_place transposed_tile() const { return first + 2 * natural::BYTES; }

 private:
  // copy starts to copy rows of a tile. Rows at or beyond `rows` become zero.
  MLXG_INLINE static void copy(shared_place to, const float* from, int rows, unsigned thread_index, unsigned threads) {
    if (!is_aligned<16>(from)) {
      for (unsigned i = thread_index; i < ELEMENTS; i += threads) {
        const unsigned r = i / COLUMNS, c = i % COLUMNS;
        store_shared(to + natural::offset(r, c), int(r) < rows ? from[r * STRIDE + c] : 0.0f);
      }
      return;
    }
    constexpr unsigned PIECES = COLUMNS / 4;  // of a row
    const unsigned row = thread_index / PIECES, column = thread_index % PIECES * 4, step = threads / PIECES;
    const float* p = from + row * STRIDE + column;
#pragma unroll
    for (unsigned below = 0; below < ROWS; below += step) {
      copy_ahead<16>(to + natural::offset(row + below, column), p + below * STRIDE, int(row + below) < rows);
    }
  }

  // round rounds the current tile and transposes it. A thread processes four rows of four columns at a time. The
  // columns of the transposed tile are in the order in which a lane of a tile holds them: in each eight, the even ones
  // come first (multiply_add). In the order of `piece`, accesses of eight threads have no bank conflicts in either
  // tile.
  MLXG_INLINE void round(unsigned thread_index, unsigned threads) const {
#pragma unroll
    for (unsigned first = 0; first < ELEMENTS / 16; first += threads) {
      const unsigned i = first + thread_index, part = i / 64;
      const unsigned quad = i % 8 + part / (COLUMNS / 32) * 8;  // of rows
      const unsigned piece = (i / 8 % 8 ^ (i % 8 / 2 + i % 2 * 4)) + part % (COLUMNS / 32) * 8;
      if (ELEMENTS / 16 % threads == 0 || i < ELEMENTS / 16) {
        round_block(quad, piece * 4);
      }
    }
  }

  MLXG_INLINE void round_block(unsigned quad, unsigned column) const {
    const unsigned row = quad / 2 * 8 + quad % 2;
    unsigned words[4][4];
#pragma unroll
    for (unsigned r = 0; r < 4; ++r) {
      load_quad(words[r], current + natural::offset(row + 2 * r, column));
    }
#pragma unroll
    for (unsigned r = 0; r < 4; ++r) {
#pragma unroll
      for (unsigned c = 0; c < 4; ++c) {
        words[r][c] = tf32_of(__builtin_bit_cast(float, words[r][c]));
      }
      if (MULTIPLIES) {
        store_quad(current + natural::offset(row + 2 * r, column), words[r]);
      }
    }
#pragma unroll
    for (unsigned c = 0; ADDS && c < 4; ++c) {
      const unsigned of_column[4] = {words[0][c], words[1][c], words[2][c], words[3][c]};
      store_quad(transposed_tile() + transposed::offset(column + c, quad * 4), of_column);
    }
  }
};

// A warpgroup_float_operand holds 64 rows from device memory in registers, rounded to TF32.
template <int COLUMNS>
struct warpgroup_float_operand : operand<float, 16, COLUMNS> {
  MLXG_INLINE void load(const float* from, int stride, int rows, unsigned lane) {
    const int first = int(lane / 32) * 16;
    operand<float, 16, COLUMNS>::load(from + size_t(first) * stride, stride, rows - first, lane % 32);
#pragma unroll
    for (int j = 0; j < COLUMNS / 4; ++j) {
      for (int i = 0; i < 2; ++i) {
        this->elements[i][j] = __builtin_bit_cast(float, tf32_of(this->elements[i][j]));
      }
    }
  }

  // terms returns a function of k: the left-hand operand of multiply_64_tf32 at the inner indices 8·k to 8·k + 7.
  MLXG_INLINE auto terms() const {
    return [this](int k) {
      const auto& e = this->elements;
      const float values[4] = {e[0][2 * k], e[1][2 * k], e[0][2 * k + 1], e[1][2 * k + 1]};
      left_registers left;
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        left.words[i] = __builtin_bit_cast(unsigned, values[i]);
      }
      return left;
    };
  }
};

// A warpgroup_stored_floats holds 64 rows from device memory in shared memory, rounded to TF32 and aligned to 1024
// bytes.
template <int COLUMNS, int STRIDE>
struct warpgroup_stored_floats {
  typedef float_matrix<64, COLUMNS> matrix;
  static constexpr int SIZE = 64 * COLUMNS;
  shared_place first;

  MLXG_INLINE void load(float* to, const float* from, int rows, unsigned lane) {
    first = shared_address(to);
#pragma unroll 4
    for (unsigned i = lane; i < SIZE; i += 128) {
      const unsigned r = i / COLUMNS, c = i % COLUMNS;
      store_shared(first + matrix::offset(r, c), tf32_of(int(r) < rows ? from[r * STRIDE + c] : 0.0f));
    }
  }

  // terms is as in warpgroup_float_operand.
  MLXG_INLINE auto terms() const { return matrix::terms(first); }
};

// multiply_transposed starts product = left · rightᵀ.
template <class LEFT, int INNER, int COLUMNS, int STRIDE, bool ADDS>
MLXG_INLINE void multiply_transposed(
    warpgroup_tile<64, COLUMNS>& product,
    const LEFT& left,
    const warpgroup_float_panel<COLUMNS, INNER, STRIDE, ADDS, true>& right,
    unsigned) {
  const auto rows = left.terms();
  const auto columns = float_matrix<COLUMNS, INNER>::terms(right.current);
  begin_products();
#pragma unroll
  for (int k = 0; k < INNER / 8; ++k) {
    if (k == 0) {
      multiply_64_tf32<false>(product.fragments[0], rows(k), columns(k));
    } else {
      multiply_64_tf32<true>(product.fragments[0], rows(k), columns(k));
    }
  }
  end_products();
}

// multiply_add starts to add left · right to sum. It rounds the elements of left to TF32. The inner indices of eight
// terms are in the order of transposed tiles: first the even ones.
template <int INNER, int COLUMNS, int STRIDE, bool MULTIPLIES>
MLXG_INLINE void multiply_add(
    warpgroup_tile<64, COLUMNS>& sum,
    const warpgroup_tile<64, INNER>& left,
    const warpgroup_float_panel<INNER, COLUMNS, STRIDE, true, MULTIPLIES>& right,
    unsigned) {
  left_registers a[INNER / 8];
#pragma unroll
  for (int k = 0; k < INNER / 8; ++k) {
    const auto& f = left.fragments[0][k];
    a[k] = {{tf32_of(f[0]), tf32_of(f[2]), tf32_of(f[1]), tf32_of(f[3])}};
  }
  const auto columns = float_matrix<COLUMNS, INNER>::terms(right.transposed_tile());
  begin_products();
#pragma unroll
  for (int k = 0; k < INNER / 8; ++k) {
    multiply_64_tf32<true>(sum.fragments[0], a[k], columns(k));
  }
  end_products();
}

// store_rows writes a tile to rows of floats.
template <int COLUMNS>
MLXG_INLINE void store_rows(const warpgroup_tile<64, COLUMNS>& tile, float* to, int stride, int rows, unsigned lane) {
#pragma unroll
  for (int i = 0; i < tile.LANE_ROWS; ++i) {
    const int row = tile.row(i, lane);
    float* const p = to + size_t(row) * stride;
    if (row < rows) {
#pragma unroll
      for (int j = 0; j < tile.LANE_COLUMNS; ++j) {
        p[tile.column(j, lane)] = tile.get(i, j);
      }
    }
  }
}

}  // namespace mlxg

#endif
