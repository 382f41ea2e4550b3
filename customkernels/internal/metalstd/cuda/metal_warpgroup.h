// The tiles, panels and left-hand operands of shaders/tiles.h for a warpgroup, which has 128 lanes. Products use the
// wgmma instructions of metal_wgmma.h. Elements of panels and operands have 16 bits.
#ifndef METAL_WARPGROUP_H
#define METAL_WARPGROUP_H

// MLXG_WARPGROUP_TILES enables the tiles of 128 lanes in tiles.h.
#define MLXG_WARPGROUP_TILES 1

#include "metal_panels.h"
#include "metal_wgmma.h"

namespace mlxg {

// A warpgroup_tile has 64 rows. Each warp holds 16 of them, as a tile.
template <int ROWS, int COLUMNS>
struct warpgroup_tile : tile<16, COLUMNS> {
  static_assert(ROWS == 64, "a warpgroup's tile has 64 rows");
  MLXG_INLINE static int row(int i, unsigned lane) {
    return int(lane / 32 * 16) + tile<16, COLUMNS>::row(i, lane % 32);
  }
  MLXG_INLINE static int column(int j, unsigned lane) { return tile<16, COLUMNS>::column(j, lane % 32); }
};

// A matrix_copy copies ROWS × COLUMNS elements from device memory to shared memory, in parts of 64 columns with the
// layout of matrix_descriptor. The columns beyond COLUMNS in the last part become zero, because a product reads its
// inner columns 16 at a time. The 128 threads share the work: a thread copies a piece of 16 bytes of every eighth row
// from its first row on, in each part. The swizzle gives these pieces the same offset in their rows. The members are
// the values that all copies of a thread share. Registers hold them, because computing them again would take more time
// than the copy.
template <class T, int ROWS, int COLUMNS, int STRIDE>
struct matrix_copy {
  static_assert(
      COLUMNS % 8 == 0 && ROWS % 16 == 0, "rows have whole pieces, and half of the threads have whole eights");
  static constexpr int PARTS = (COLUMNS + 63) / 64, WIDTH = PARTS * 64;
  unsigned row;       // the thread's first row
  unsigned last_row;  // its first row in the last part, or NO_ROW if its piece is beyond COLUMNS
  unsigned from, to;  // byte offsets of its first piece in the source and in shared memory
  bool has_pieces;    // the source is aligned to 16 bytes

  MLXG_INLINE static unsigned offset(unsigned row, unsigned piece) {
    return piece / 8 * (ROWS * 128) + row * 128 + (piece % 8 ^ row % 8) * 16;
  }

  MLXG_INLINE void init(const T* source, unsigned thread_index) {
    const unsigned piece = thread_index % 8, index = thread_index / 8;
    row = index % 8 + index / 8 * (ROWS / 2);
    from = row * STRIDE * sizeof(T) + piece * 16 + MIDDLE;
    to = offset(row, piece);
    keep(row);
    keep(from);
    keep(to);
    last_row = WIDTH - 64 + piece * 8 < COLUMNS ? row : NO_ROW;
    has_pieces = is_aligned<16>(source);
  }

  // start starts a copy. Rows at or beyond `rows` become zero.
  MLXG_INLINE void start(shared_place place, const T* source, int rows, unsigned thread_index) const {
    if (!MLXG_ALIGNED_INPUTS && !has_pieces) {
      for (unsigned i = thread_index; i < ROWS * WIDTH; i += 128) {
        const unsigned r = i / WIDTH, c = i % WIDTH;
        const bool there = int(r) < rows && c < COLUMNS;
        store_shared(place + offset(r, c / 8) + c % 8 * 2, there ? source[r * STRIDE + c] : T(0.0f));
      }
      return;
    }
    unsigned left = rows - row;
    keep(left);
    const int left_in_last = COLUMNS == WIDTH ? int(left) : rows - int(last_row);
    start_pieces<0>(place + to, global_address(source) + from, int(left), left_in_last);
  }

 private:
  // The instruction adds a constant from -2048 to 2047 to the address of its source. The offset `from` is in the middle
  // of this range.
  static constexpr int MIDDLE = 2048;
  static constexpr unsigned NO_ROW = 1u << 30;  // no source has as many rows

  template <int I>
  MLXG_INLINE static void start_pieces(shared_place to, unsigned long long from, int rows, int rows_in_last) {
    constexpr int part = I % PARTS, below = I / PARTS * 8, row_bytes = STRIDE * sizeof(T);
    copy_piece<(part * ROWS + below) * 128, below * row_bytes + part * 128 - MIDDLE>(
        to, from, below < (part + 1 < PARTS ? rows : rows_in_last));
    if constexpr (I + 1 < ROWS / 16 * PARTS) {
      start_pieces<I + 1>(to, from, rows, rows_in_last);
    }
  }
};

// A warpgroup_panel holds BUFFERS buffers of ROWS × COLUMNS elements in shared memory, each aligned to 1024 bytes. A
// buffer consists of parts of 64 columns, in the layout of matrix_descriptor. The last part may have columns of zeros.
template <class T, int ROWS, int COLUMNS, int STRIDE = COLUMNS, int BUFFERS = 2>
struct warpgroup_panel {
  static_assert(sizeof(T) == 2 && ROWS % 8 == 0, "a panel has eights of rows of 16-bit elements");
  typedef matrix_copy<T, ROWS, COLUMNS, STRIDE> panel_copy;
  static constexpr bool PREFETCHES = true;
  static constexpr int ELEMENTS = ROWS * panel_copy::WIDTH, SIZE = BUFFERS * ELEMENTS;
  static constexpr unsigned PART_BYTES = ROWS * 128, BYTES = ELEMENTS * sizeof(T);
  shared_place first;    // the first buffer
  shared_place current;  // the buffer of the current tile
  panel_copy copy;

  MLXG_INLINE static void synchronize() { publish_copies(); }
  MLXG_INLINE static void publish() { synchronize(); }

  MLXG_INLINE void init(T* to, const T* from, int rows, unsigned thread_index, unsigned) {
    first = shared_address(to);
    current = first + (BUFFERS - 1) * BYTES;
    copy.init(from, thread_index);
    copy.start(first, from, rows, thread_index);
  }

  MLXG_INLINE void advance(const T* from, int rows, unsigned thread_index, unsigned) {
    current = buffer_after<BUFFERS, BYTES>(first, current);
    copy.start(buffer_after<BUFFERS, BYTES>(first, current), from, rows, thread_index);
  }
};

// A warpgroup_operand holds 64 rows from device memory in registers.
template <class T, int ROWS, int COLUMNS>
struct warpgroup_operand : operand<T, 16, COLUMNS> {
  MLXG_INLINE void load(const T* from, int stride, int rows, unsigned lane) {
    const int first = int(lane / 32) * 16;
    operand<T, 16, COLUMNS>::load(from + size_t(first) * stride, stride, rows - first, lane % 32);
  }

  // terms returns a function of k: the left-hand operand of multiply_64 at the inner indices 16·k to 16·k + 15. Indices
  // at or beyond COLUMNS have zeros.
  MLXG_INLINE auto terms() const {
    return [this](int k) {
      const auto& p = this->pairs;
      const int j = 2 * k;
      const bool is_whole = j + 1 < COLUMNS / 8;
      return left_registers{{p[0][j], p[1][j], is_whole ? p[0][j + 1] : 0, is_whole ? p[1][j + 1] : 0}};
    };
  }
};

// A warpgroup_stored_operand holds 64 rows from device memory in shared memory, aligned to 1024 bytes. Their copy is
// complete after the first synchronize of a panel.
template <class T, int ROWS, int COLUMNS, int STRIDE>
struct warpgroup_stored_operand {
  typedef matrix_copy<T, ROWS, COLUMNS, STRIDE> operand_copy;
  static constexpr int SIZE = ROWS * operand_copy::WIDTH;
  shared_place first;

  MLXG_INLINE void load(T* to, const T* from, int rows, unsigned lane) {
    first = shared_address(to);
    operand_copy copy;
    copy.init(from, lane);
    copy.start(first, from, rows, lane);
  }

  // terms is as in warpgroup_operand.
  MLXG_INLINE auto terms() const {
    const matrix_descriptor whole = describe(first, 0);
    return [whole](int k) { return whole.after(k / 4 * ROWS * 128 + k % 4 * 32); };
  }
};

// multiply_transposed starts product = left · rightᵀ. left is a warpgroup_operand or a warpgroup_stored_operand.
template <class LEFT, int INNER, int COLUMNS, int STRIDE, int BUFFERS, class T>
MLXG_INLINE void multiply_transposed(
    warpgroup_tile<64, COLUMNS>& product,
    const LEFT& left,
    const warpgroup_panel<T, COLUMNS, INNER, STRIDE, BUFFERS>& right,
    unsigned) {
  const auto rows = left.terms();
  const matrix_descriptor columns = describe(right.current, 0);
  begin_products();
#pragma unroll
  for (int k = 0; k < (INNER + 15) / 16; ++k) {
    const matrix_descriptor b = columns.after(k / 4 * right.PART_BYTES + k % 4 * 32);
    if (k == 0) {
      multiply_64<T, false, false>(product.fragments[0], rows(k), b);
    } else {
      multiply_64<T, false, true>(product.fragments[0], rows(k), b);
    }
  }
  end_products();
}

// multiply_add starts to add left · right to sum. It rounds the elements of left to T.
template <int INNER, int COLUMNS, int STRIDE, int BUFFERS, class T>
MLXG_INLINE void multiply_add(
    warpgroup_tile<64, COLUMNS>& sum,
    const warpgroup_tile<64, INNER>& left,
    const warpgroup_panel<T, INNER, COLUMNS, STRIDE, BUFFERS>& right,
    unsigned) {
  left_registers a[INNER / 16];
#pragma unroll
  for (int k = 0; k < INNER / 16; ++k) {
    const auto& f = left.fragments[0];
    a[k].words[0] = packed_pair<T>(f[2 * k][0], f[2 * k][1]);
    a[k].words[1] = packed_pair<T>(f[2 * k][2], f[2 * k][3]);
    a[k].words[2] = packed_pair<T>(f[2 * k + 1][0], f[2 * k + 1][1]);
    a[k].words[3] = packed_pair<T>(f[2 * k + 1][2], f[2 * k + 1][3]);
  }
  const matrix_descriptor first = describe(right.current, right.PART_BYTES);
  begin_products();
#pragma unroll
  for (int k = 0; k < INNER / 16; ++k) {
    multiply_64<T, true, true>(sum.fragments[0], a[k], first.after(k * 2048));
  }
  end_products();
}

// finish blocks until a tile's products are complete. The PENDING groups of products that began last may still run.
template <int PENDING, int COLUMNS>
MLXG_INLINE void finish(warpgroup_tile<64, COLUMNS>& tile) {
  wait_for_products<PENDING>();
#pragma unroll
  for (int i = 0; i < COLUMNS / 8; ++i) {
    read_again(tile.fragments[0][i]);
  }
}

// transpose_words transposes the words of the four lanes that share a row: word j of lane i becomes word i of lane j.
MLXG_INLINE void transpose_words(unsigned (&words)[4], unsigned lane) {
#pragma unroll
  for (unsigned bit = 1; bit <= 2; bit *= 2) {
    const bool is_upper = lane & bit;
#pragma unroll
    for (unsigned j = 0; j < 4; ++j) {
      if ((j & bit) == 0) {
        unsigned &low = words[j], &high = words[j | bit];
        const unsigned received = from_opposite(is_upper ? low : high, bit);
        low = is_upper ? received : low;
        high = is_upper ? high : received;
      }
    }
  }
}

// store_rows writes a tile to rows of T, which begin at multiples of 16 bytes. Lanes exchange words, so that each
// writes 16 bytes of a row at a time. Stores of single elements would take up to a tenth of a kernel's time.
template <int COLUMNS, class T>
MLXG_INLINE void store_rows(const warpgroup_tile<64, COLUMNS>& tile, T* to, int stride, int rows, unsigned lane) {
#pragma unroll
  for (int i = 0; i < tile.LANE_ROWS; ++i) {
    const int row = tile.row(i, lane);
    T* const p = to + size_t(row) * stride + lane % 4 * 8;
#pragma unroll
    for (int j = 0; j < tile.LANE_COLUMNS; j += 8) {
      unsigned words[4];
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        const int column = j + 2 * k;
        words[k] = column < tile.LANE_COLUMNS ? packed_pair<T>(tile.get(i, column), tile.get(i, column + 1)) : 0;
      }
      transpose_words(words, lane);
      if (row < rows && int(lane % 4 * 8) + j * 4 < COLUMNS) {
        store_words(p + j * 4, words);
      }
    }
  }
}

}  // namespace mlxg

#endif
