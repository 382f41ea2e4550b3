// Matrix tiles of one simdgroup and panels of its threadgroup, for products of matrices in float.
//
// A Tile has ROWS × COLUMNS floats, spread over the LANES lanes of a simdgroup. A lane holds the elements at rows
// row(i), i < LANE_ROWS, and columns column(j), j < LANE_COLUMNS, and accesses them by get(i, j) and set(i, j, value).
// Code that uses nothing else is correct for every layout:
//
//   LANES = 32   fragments of 8×8, simdgroup_matrix, in the lane layout that MLX's own kernels rely on: two neighboring
//                columns of a row per lane (tile_simdgroup.h). A backend whose matrix units have another shape defines
//                MLXG_DEVICE_TILES and provides mlxg::tile, mlxg::panel, mlxg::operand and their products, which may
//                round the left tile to T.
//   LANES = 128  a warpgroup: a simdgroup of these files consists of four simdgroups (warps) of the device. A backend
//                with products for warpgroups defines MLXG_WARPGROUP_TILES. They are asynchronous; see finish. Floats
//                must be multiplied as TF32 (MULTIPLIES_TF32).
//   LANES = 1    one thread has the whole tile: plain loops for a CPU's vector units (tile_thread.h)
//   BY_COLUMNS   the same, stored by columns, for panels whose STRIDE is their number of columns (tile_columns.h)
//
// A Panel is the right-hand operand of a product: a tile of ROWS × COLUMNS elements of T, whose rows in device memory
// are STRIDE elements apart. With one lane it stays in device memory. Otherwise it is copied to threadgroup memory,
// SIZE elements, which may include a second buffer for the next tile (PREFETCHES). Each of the `threads` threads that
// share a panel calls, with its thread_index,
//
//   init(memory, first, rows, thread_index, threads)      once: `first` is the first source
//   acquire(panels)                                       blocks until the current tiles are free and prefetched
//                                                         tiles have arrived
//   advance(next, rows, thread_index, threads)            makes the previous source the current tile; the panel may
//                                                         prefetch `next` from here on
//   commit(panels)                                        blocks until the current tiles are visible to all threads
//
// `rows` is the number of rows of the source in the same call. Rows at or beyond it read as zero.
//
// An Operand is the left-hand operand of a product with a transposed panel. It is loaded from rows of T in device
// memory.
//
// The products of tiles and their completion:
//
//   multiply_add(sum, left, right, lane)              adds left · right to sum. The product is summed separately first,
//                                                     so the error of a long sum grows with the number of panels and
//                                                     not with the number of their rows
//   multiply_transposed(product, left, right, lane)   computes left · rightᵀ of an Operand and a panel
//   finish<PENDING>(product)                          blocks until all asynchronous products except the PENDING most
//                                                     recent ones are complete. A kernel calls it before it reads a
//                                                     product's tile and before it overwrites a product's operands

#include "vectors.h"
#include <metal_simdgroup_matrix>

template <int LANES, int ROWS, int COLUMNS>
struct Tile;

constant constexpr int BY_COLUMNS = 0;

// ElementOrder is the order of a lane's elements in memory, for a loop over OUTER and one over INNER in it. A CPU makes
// vectors of the inner loop.
template <typename TILE>
struct ElementOrder {
  static constexpr constant int OUTER = TILE::LANE_ROWS, INNER = TILE::LANE_COLUMNS;

  static int row(int outer, int) { return outer; }
  static int column(int, int inner) { return inner; }
};

// MULTIPLIES_TF32 is whether floats are rounded to TF32, with 11 significant bits, for products.
#if defined(MLXG_TF32) && MLXG_TF32
constant constexpr bool MULTIPLIES_TF32 = true;
#else
constant constexpr bool MULTIPLIES_TF32 = false;
#endif

// USES of a Panel: whether it is an operand of multiply_add, of multiply_transposed, or of neither and read by get_row.
// A backend may need another layout for each product. A panel with the bit IN_FLIGHT has a third buffer, so that
// acquire and advance may be called before products of the current tile are complete. Only a warpgroup's panels have
// it.
constant constexpr int FOR_ROWS = 0, FOR_ADD = 1, FOR_TRANSPOSED = 2, FOR_BOTH = 3, IN_FLIGHT = 4;

template <int LANES, typename T, int ROWS, int COLUMNS, int STRIDE = COLUMNS, int USES = FOR_BOTH>
struct Panel;

template <int LANES, typename T, int ROWS, int COLUMNS>
struct Operand : Tile<LANES, ROWS, COLUMNS> {
  // load reads rows that are `stride` elements apart. Rows at or beyond `rows` are zero.
  void load(device const T* from, int stride, int rows, uint lane) {
    for (int i = 0; i < this->LANE_ROWS; i++) {
      const int row = this->row(i, lane);
      device const T* const p = from + size_t(row) * stride;
      if (row < rows) {
        for (int j = 0; j < this->LANE_COLUMNS; j++) {
          this->set(i, j, float(p[this->column(j, lane)]));
        }
      } else {
        for (int j = 0; j < this->LANE_COLUMNS; j++) {
          this->set(i, j, 0);
        }
      }
    }
  }
};

// A StoredOperand is an Operand that may be in threadgroup memory: SIZE elements for each simdgroup, or 0 if it is not.
// Its rows in device memory are STRIDE elements apart.
template <int LANES, typename T, int ROWS, int COLUMNS, int STRIDE>
struct StoredOperand : Operand<LANES, T, ROWS, COLUMNS> {
  static constexpr constant int SIZE = 0;

  void load(threadgroup T*, device const T* from, int rows, uint lane) {
    Operand<LANES, T, ROWS, COLUMNS>::load(from, STRIDE, rows, lane);
  }
};

// A WideOperand is a StoredOperand that is in threadgroup memory only if a lane lacks the registers for it and another
// Operand.
template <int LANES, typename T, int ROWS, int COLUMNS, int STRIDE>
struct WideOperand : Operand<LANES, T, ROWS, COLUMNS> {
  static constexpr constant int SIZE = 0;

  void load(threadgroup T*, device const T* from, int rows, uint lane) {
    Operand<LANES, T, ROWS, COLUMNS>::load(from, STRIDE, rows, lane);
  }
};

// begin_diagonal declares that row i of a tile is 0 behind column i − diagonal. Only tiles stored by columns use it.
template <typename TILE>
inline void begin_diagonal(thread TILE&, int) {}

// fill sets all elements.
template <int LANES, int ROWS, int COLUMNS>
inline void fill(thread Tile<LANES, ROWS, COLUMNS>& tile, float value) {
  typedef ElementOrder<Tile<LANES, ROWS, COLUMNS>> Order;
  for (int a = 0; a < Order::OUTER; a++) {
    for (int b = 0; b < Order::INNER; b++) {
      const int i = Order::row(a, b), j = Order::column(a, b);
      tile.set(i, j, value);
    }
  }
}

#ifdef MLXG_DEVICE_TILES

template <int ROWS, int COLUMNS>
struct Tile<32, ROWS, COLUMNS> : mlxg::tile<ROWS, COLUMNS> {};

template <typename T, int ROWS, int COLUMNS, int STRIDE, int USES>
struct Panel<32, T, ROWS, COLUMNS, STRIDE, USES> : mlxg::panel<T, ROWS, COLUMNS, STRIDE> {};

template <typename T, int ROWS, int COLUMNS>
struct Operand<32, T, ROWS, COLUMNS> : mlxg::operand<T, ROWS, COLUMNS> {};

using mlxg::finish;
using mlxg::multiply_add;
using mlxg::multiply_transposed;

#else
#include "tile_simdgroup.h"
#include "tile_thread.h"

template <int LANES, int ROWS, int INNER, int COLUMNS, int STRIDE, int USES, typename T>
inline void multiply_add(
    thread Tile<LANES, ROWS, COLUMNS>& sum,
    thread Tile<LANES, ROWS, INNER>& left,
    thread const Panel<LANES, T, INNER, COLUMNS, STRIDE, USES>& right,
    uint lane) {
  add_product<false>(sum, left, right, lane);
}

template <int LANES, int ROWS, int INNER, int COLUMNS, int STRIDE, int USES, typename T>
inline void multiply_transposed(
    thread Tile<LANES, ROWS, COLUMNS>& product,
    thread Operand<LANES, T, ROWS, INNER>& left,
    thread const Panel<LANES, T, COLUMNS, INNER, STRIDE, USES>& right,
    uint lane) {
  fill(product, 0);
  add_product<true>(product, left, right, lane);
}

template <int PENDING, int LANES, int ROWS, int COLUMNS>
inline void finish(thread Tile<LANES, ROWS, COLUMNS>&) {}

#include "tile_columns.h"

#endif

// any_lane reports whether `value` is true in any lane of the simdgroup. All lanes call it.
template <int LANES>
inline bool any_lane(bool value) {
  return simd_any(value);
}

#ifdef MLXG_WARPGROUP_TILES

template <>
inline bool any_lane<128>(bool value) {
  return mlxg::any_in_warpgroup(value);
}

template <int ROWS, int COLUMNS>
struct Tile<128, ROWS, COLUMNS> : mlxg::warpgroup_tile<ROWS, COLUMNS> {};

template <typename T, int ROWS, int COLUMNS, int STRIDE, int USES>
struct Panel<128, T, ROWS, COLUMNS, STRIDE, USES>
    : mlxg::warpgroup_panel<T, ROWS, COLUMNS, STRIDE, (USES & IN_FLIGHT) != 0 ? 3 : 2> {};

template <int ROWS, int COLUMNS, int STRIDE, int USES>
struct Panel<128, float, ROWS, COLUMNS, STRIDE, USES>
    : mlxg::warpgroup_float_panel<ROWS, COLUMNS, STRIDE, (USES & FOR_ADD) != 0, (USES & FOR_TRANSPOSED) != 0> {};

template <int ROWS, int COLUMNS, int STRIDE>
struct Panel<128, float, ROWS, COLUMNS, STRIDE, FOR_ROWS> : mlxg::panel<float, ROWS, COLUMNS, STRIDE> {};

template <int ROWS, int COLUMNS, int STRIDE>
struct Panel<128, float, ROWS, COLUMNS, STRIDE, FOR_ROWS | IN_FLIGHT> : mlxg::panel<float, ROWS, COLUMNS, STRIDE, 3> {};

template <typename T, int ROWS, int COLUMNS>
struct Operand<128, T, ROWS, COLUMNS> : mlxg::warpgroup_operand<T, ROWS, COLUMNS> {};

template <int ROWS, int COLUMNS>
struct Operand<128, float, ROWS, COLUMNS> : mlxg::warpgroup_float_operand<COLUMNS> {};

template <typename T, int ROWS, int COLUMNS, int STRIDE>
struct StoredOperand<128, T, ROWS, COLUMNS, STRIDE> : mlxg::warpgroup_stored_operand<T, ROWS, COLUMNS, STRIDE> {};

template <int ROWS, int COLUMNS, int STRIDE>
struct StoredOperand<128, float, ROWS, COLUMNS, STRIDE> : mlxg::warpgroup_stored_floats<COLUMNS, STRIDE> {};

template <int ROWS, int COLUMNS, int STRIDE>
struct WideOperand<128, float, ROWS, COLUMNS, STRIDE> : StoredOperand<128, float, ROWS, COLUMNS, STRIDE> {};

#endif

// acquire blocks until all threads have finished with the panels' current tiles and the prefetched tiles have arrived.
template <typename PANEL, typename OTHER>
inline void acquire(thread const PANEL&, thread const OTHER&) {
  PANEL::synchronize();
}

template <typename PANEL>
inline void acquire(thread const PANEL& panel) {
  acquire(panel, panel);
}

// commit blocks until the panels' current tiles are visible to all threads. Prefetched tiles are visible from acquire
// on, so two panels that prefetch need no barrier here.
template <typename PANEL, typename OTHER>
inline void commit(thread const PANEL&, thread const OTHER&) {
  if (!(PANEL::PREFETCHES && OTHER::PREFETCHES)) {
    PANEL::publish();
  }
}

template <typename PANEL>
inline void commit(thread const PANEL& panel) {
  commit(panel, panel);
}

// store writes a tile to rows of device memory, `stride` elements apart. Rows at or beyond `rows` are not written.
template <int LANES, int ROWS, int COLUMNS, typename T>
inline void store(thread Tile<LANES, ROWS, COLUMNS>& tile, device T* to, int stride, int rows, uint lane) {
  for (int i = 0; i < tile.LANE_ROWS; i++) {
    const int row = tile.row(i, lane);
    device T* const p = to + size_t(row) * stride;
    if (row < rows) {
      for (int j = 0; j < tile.LANE_COLUMNS; j++) {
        p[tile.column(j, lane)] = T(tile.get(i, j));
      }
    }
  }
}

#ifdef MLXG_WARPGROUP_TILES

template <int ROWS, int COLUMNS, typename T>
inline void store(thread Tile<128, ROWS, COLUMNS>& tile, device T* to, int stride, int rows, uint lane) {
  mlxg::store_rows(tile, to, stride, rows, lane);
}

#endif

template <int LANES, int ROWS, int COLUMNS>
inline void multiply(thread Tile<LANES, ROWS, COLUMNS>& tile, float factor) {
  typedef ElementOrder<Tile<LANES, ROWS, COLUMNS>> Order;
  for (int a = 0; a < Order::OUTER; a++) {
    for (int b = 0; b < Order::INNER; b++) {
      const int i = Order::row(a, b), j = Order::column(a, b);
      tile.set(i, j, tile.get(i, j) * factor);
    }
  }
}

// multiply_rows multiplies each of the lane's rows by its factor.
template <int LANES, int ROWS, int COLUMNS>
inline void multiply_rows(thread Tile<LANES, ROWS, COLUMNS>& tile, thread const float* factors) {
  typedef ElementOrder<Tile<LANES, ROWS, COLUMNS>> Order;
  for (int a = 0; a < Order::OUTER; a++) {
    for (int b = 0; b < Order::INNER; b++) {
      const int i = Order::row(a, b), j = Order::column(a, b);
      tile.set(i, j, tile.get(i, j) * factors[i]);
    }
  }
}

// divide_rows divides each of the lane's rows by its divisor.
template <int LANES, int ROWS, int COLUMNS>
inline void divide_rows(thread Tile<LANES, ROWS, COLUMNS>& tile, thread const float* divisors) {
  typedef ElementOrder<Tile<LANES, ROWS, COLUMNS>> Order;
  for (int a = 0; a < Order::OUTER; a++) {
    for (int b = 0; b < Order::INNER; b++) {
      const int i = Order::row(a, b), j = Order::column(a, b);
      tile.set(i, j, tile.get(i, j) / divisors[i]);
    }
  }
}

#ifdef MLXG_WARPGROUP_TILES

// The elements of a warpgroup's operands have 16 bits. For their results the product with a reciprocal is accurate
// enough.
template <int ROWS, int COLUMNS>
inline void divide_rows(thread Tile<128, ROWS, COLUMNS>& tile, thread const float* divisors) {
  float reciprocals[Tile<128, ROWS, COLUMNS>::LANE_ROWS];
  for (int i = 0; i < tile.LANE_ROWS; i++) {
    reciprocals[i] = 1 / divisors[i];
  }
  multiply_rows(tile, reciprocals);
}

#endif

// rescale_and_add multiplies each of the lane's rows of sum by its factor, and adds left · right. are_one tells that
// all factors of the lane are 1.
template <typename SUM, typename LEFT, typename PANEL>
inline void rescale_and_add(
    thread SUM& sum,
    thread const float* factors,
    bool are_one,
    thread LEFT& left,
    thread const PANEL& right,
    uint lane) {
  if (!simd_all(are_one)) {
    multiply_rows(sum, factors);
  }
  multiply_add(sum, left, right, lane);
}

// row_max finds the largest element of each of the lane's rows.
template <int LANES, int ROWS, int COLUMNS>
inline void row_max(thread Tile<LANES, ROWS, COLUMNS>& tile, thread float* largest) {
  for (int i = 0; i < tile.LANE_ROWS; i++) {
    float value = tile.get(i, 0);
    for (int j = 1; j < tile.LANE_COLUMNS; j++) {
      value = max(value, tile.get(i, j));
    }
    value = max(value, simd_shuffle_xor(value, tile.SAME_ROW_BIT_0));
    largest[i] = max(value, simd_shuffle_xor(value, tile.SAME_ROW_BIT_1));
  }
}

// row_sum sums each of the lane's rows.
template <int LANES, int ROWS, int COLUMNS>
inline void row_sum(thread Tile<LANES, ROWS, COLUMNS>& tile, thread float* sums) {
  for (int i = 0; i < tile.LANE_ROWS; i++) {
    float value = 0;
    for (int j = 0; j < tile.LANE_COLUMNS; j++) {
      value += tile.get(i, j);
    }
    value += simd_shuffle_xor(value, tile.SAME_ROW_BIT_0);
    sums[i] = value + simd_shuffle_xor(value, tile.SAME_ROW_BIT_1);
  }
}

template <int ROWS, int COLUMNS>
inline void row_sum(thread Tile<1, ROWS, COLUMNS>& tile, thread float* sums) {
  for (int i = 0; i < ROWS; i++) {
    float parts[8] = {};
    for (int j = 0; j < COLUMNS; j += 8) {
      for (int k = 0; k < 8; k++) {
        parts[k] += tile.elements[i][j + k];
      }
    }
    sums[i] = Pairwise<8>::sum(parts);
  }
}

// column_sum sums each of the lane's columns.
template <int ROWS, int COLUMNS>
inline void column_sum(thread Tile<32, ROWS, COLUMNS>& tile, thread float* sums) {
  for (int j = 0; j < tile.LANE_COLUMNS; j++) {
    float value = 0;
    for (int i = 0; i < tile.LANE_ROWS; i++) {
      value += tile.get(i, j);
    }
    value += simd_shuffle_xor(value, tile.SAME_COLUMN_BIT_0);
    value += simd_shuffle_xor(value, tile.SAME_COLUMN_BIT_1);
    sums[j] = value + simd_shuffle_xor(value, tile.SAME_COLUMN_BIT_2);
  }
}

template <int ROWS, int COLUMNS>
inline void column_sum(thread Tile<1, ROWS, COLUMNS>& tile, thread float* sums) {
  for (int j = 0; j < COLUMNS; j++) {
    sums[j] = 0;
  }
  for (int i = 0; i < ROWS; i++) {
    for (int j = 0; j < COLUMNS; j++) {
      sums[j] += tile.elements[i][j];
    }
  }
}
