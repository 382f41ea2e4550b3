// The tiles, panels and left-hand operands of shaders/tiles.h for the matrix units of an NVIDIA GPU. One mma
// instruction computes 16 rows and 8 columns of a product and accumulates in float. For elements of 16 bits, K is 16.
// metal_tiles.h has the products.
#ifndef METAL_PANELS_H
#define METAL_PANELS_H

#include "metal_mma.h"

// MLXG_ALIGNED_INPUTS is 1 if the inputs of the launch begin at multiples of 16 bytes.
#ifndef MLXG_ALIGNED_INPUTS
#define MLXG_ALIGNED_INPUTS 0
#endif

namespace mlxg {

// is_aligned reports whether the rows of a panel or operand begin at multiples of BYTES. They have whole vectors of
// this size, so they do if the input does. A test in each copy of a panel takes up to 7 % of the time of attention.
template <int BYTES>
MLXG_INLINE bool is_aligned(const void* first) {
  return MLXG_ALIGNED_INPUTS || (unsigned long long)first % BYTES == 0;
}

// A tile holds its elements in the register layout of mma's result: in each fragment of 8×8, a lane has two neighboring
// columns of a row. Fragments that are rounded to 16 bits are left-hand operands without a shuffle.
template <int ROWS, int COLUMNS>
struct tile {
  static_assert(ROWS % 16 == 0 && COLUMNS % 8 == 0, "a tile has whole fragments of 16 rows and 8 columns");
  static constexpr int LANE_ROWS = ROWS / 8, LANE_COLUMNS = COLUMNS / 4;
  // Lanes that share a row differ in the SAME_ROW bits of their numbers, and lanes that share a column in the others.
  static constexpr int SAME_ROW_BIT_0 = 1, SAME_ROW_BIT_1 = 2;
  static constexpr int SAME_COLUMN_BIT_0 = 4, SAME_COLUMN_BIT_1 = 8, SAME_COLUMN_BIT_2 = 16;
  float fragments[ROWS / 16][COLUMNS / 8][4];  // two columns of a row, then of the row 8 below it

  MLXG_INLINE static int row(int i, unsigned lane) { return 8 * i + int(lane / 4); }
  MLXG_INLINE static int column(int j, unsigned lane) { return 8 * (j / 2) + int(lane % 4 * 2) + j % 2; }
  MLXG_INLINE float get(int i, int j) const { return fragments[i / 2][j / 2][i % 2 * 2 + j % 2]; }
  MLXG_INLINE void set(int i, int j, float value) { fragments[i / 2][j / 2][i % 2 * 2 + j % 2] = value; }
};

// buffer_after returns the address of the buffer that follows the current one in a ring of BUFFERS buffers.
template <int BUFFERS, unsigned BYTES>
MLXG_INLINE shared_place buffer_after(shared_place first, shared_place current) {
  static_assert(BUFFERS == 2 || BUFFERS == 3, "a ring has two or three buffers");
  if (BUFFERS == 2) {
    return 2 * first + BYTES - current;
  }
  return current == first + 2 * BYTES ? first : current + BYTES;
}

// A panel holds ROWS × COLUMNS elements in shared memory and, if it PREFETCHES, more buffers for the next tiles. If
// copies have 16 bytes, the pitch of a row is an odd multiple of 16 bytes, so that loads of eight rows at one column
// have no bank conflicts.
template <class T, int ROWS, int COLUMNS, int STRIDE = COLUMNS, int BUFFERS = 2>
struct panel {
  // Bytes and elements of one copy.
  static constexpr int BYTES = COLUMNS * sizeof(T) % 16 == 0 ? 16 : COLUMNS * sizeof(T) % 8 == 0 ? 8 : 4;
  static constexpr int VEC = BYTES / sizeof(T);
  static_assert(COLUMNS % VEC == 0, "a panel's rows are whole vectors");
  // Elements of a row and of a buffer in shared memory.
  static constexpr int PITCH = BYTES == 16 ? (COLUMNS / VEC | 1) * VEC : COLUMNS;
  static constexpr int ELEMENTS = ROWS * PITCH;
  // Without dynamic memory, the limits for two buffers keep a kernel's panels within the 48 KiB of a block: two large
  // panels and a small one, or the panels of both parts of a pair of simdgroups (STRIDE != COLUMNS) and 8 KiB of
  // partial scores.
  static constexpr bool PREFETCHES = MLXG_DYNAMIC_MEMORY > 0 ||
                                     2 * ELEMENTS * sizeof(T) <= (STRIDE == COLUMNS ? 23 : 9) * 1024;
  static constexpr int SIZE = PREFETCHES ? BUFFERS * ELEMENTS : ELEMENTS;
  shared_place first;    // the first buffer
  shared_place current;  // the buffer of the current tile
  const T* next;
  int next_rows;

  // synchronize blocks until the copies of all threads have arrived.
  MLXG_INLINE static void synchronize() { wait_for_copies(); }
  MLXG_INLINE static void publish() { synchronize(); }

  MLXG_INLINE void init(T* to, const T* from, int rows, unsigned thread_index, unsigned threads) {
    first = shared_address(to);
    current = first + (SIZE - ELEMENTS) * sizeof(T);
    next = from;
    next_rows = rows;
    if (PREFETCHES) {
      copy(first, from, rows, thread_index, threads);
    }
  }

  MLXG_INLINE void advance(const T* from, int rows, unsigned thread_index, unsigned threads) {
    if (PREFETCHES) {
      current = after(current);
      copy(after(current), from, rows, thread_index, threads);
    } else {
      copy(current, next, next_rows, thread_index, threads);
      next = from;
      next_rows = rows;
    }
  }

  // at returns the address of an element of the current tile. offset is its distance in bytes from the first element.
  MLXG_INLINE shared_place at(unsigned row, unsigned column) const { return current + offset(row, column); }
  MLXG_INLINE static shared_place offset(unsigned row, unsigned column) {
    return (row * PITCH + column) * unsigned(sizeof(T));
  }
  MLXG_INLINE float get(unsigned row, unsigned column) const { return float(load_shared<T>(at(row, column))); }
  MLXG_INLINE void get_row(unsigned row, float* to) const {
#pragma unroll
    for (int c = 0; c < COLUMNS; ++c) {
      to[c] = get(row, c);
    }
  }

 private:
  MLXG_INLINE shared_place after(shared_place buffer) const {
    return buffer_after<BUFFERS, ELEMENTS * sizeof(T)>(first, buffer);
  }

  // copy starts to copy rows to a buffer.
  MLXG_INLINE void copy(shared_place to, const T* from, int rows, unsigned thread_index, unsigned threads) {
    if (rows <= 0) {
      return;
    }
    if (!is_aligned<BYTES>(from)) {
      for (unsigned i = thread_index; i < ROWS * COLUMNS; i += threads) {
        const unsigned row = i / COLUMNS, column = i % COLUMNS;
        store_shared(to + offset(row, column), int(row) < rows ? from[int(row) * STRIDE + int(column)] : T(0.0f));
      }
      return;
    }
    const unsigned vecs = COLUMNS / VEC;  // of a row
    if (threads % vecs == 0) {
      // A thread copies the same columns of every row_step-th row.
      const unsigned row = thread_index / vecs, column = thread_index % vecs * VEC, row_step = threads / vecs;
      const shared_place own = to + offset(row, column);
      from += int(row) * STRIDE + int(column);
#pragma unroll
      for (unsigned below = 0; below < ROWS; below += row_step) {
        if (ROWS % row_step == 0 || row + below < ROWS) {
          copy_ahead<BYTES>(own + offset(below, 0), from + int(below) * STRIDE, int(row + below) < rows);
        }
      }
    } else {
#pragma unroll
      for (unsigned first = 0; first < ROWS * vecs; first += threads) {
        const unsigned i = first + thread_index, row = i / vecs, column = i % vecs * VEC;
        if (i < ROWS * vecs) {
          copy_ahead<BYTES>(to + offset(row, column), from + int(row) * STRIDE + int(column), int(row) < rows);
        }
      }
    }
  }
};

// An operand holds rows from device memory in the layout of mma's left-hand operand.
template <class T, int ROWS, int COLUMNS>
struct operand {
  unsigned pairs[ROWS / 8][COLUMNS / 8];

  MLXG_INLINE void load(const T* from, int stride, int rows, unsigned lane) {
    const bool aligned = is_aligned<4>(from);
#pragma unroll
    for (int i = 0; i < ROWS / 8; ++i) {
      const int row = 8 * i + int(lane / 4);
      const T* const p = from + size_t(row) * stride + lane % 4 * 2;
#pragma unroll
      for (int j = 0; j < COLUMNS / 8; ++j) {
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

// For floats, a lane's columns are four apart, because ldmatrix gives a lane every fourth float of a panel's row.
template <int ROWS, int COLUMNS>
struct operand<float, ROWS, COLUMNS> {
  float elements[ROWS / 8][COLUMNS / 4];

  MLXG_INLINE void load(const float* from, int stride, int rows, unsigned lane) {
#pragma unroll
    for (int i = 0; i < ROWS / 8; ++i) {
      const int row = 8 * i + int(lane / 4);
#pragma unroll
      for (int j = 0; j < COLUMNS / 4; ++j) {
        elements[i][j] = row < rows ? from[size_t(row) * stride + 4 * j + lane % 4] : 0.0f;
      }
    }
  }
};

}  // namespace mlxg

#endif
