// Products of matrices in device memory whose results are tiles of the simdgroups of a threadgroup.

#include "chunk_decay.h"
#include "tiles.h"

// A Team identifies a thread. A threadgroup has SIMDGROUPS simdgroups of LANES lanes.
template <int LANES, int SIMDGROUPS>
struct Team {
  static constexpr constant int THREADS = LANES * SIMDGROUPS;
  uint lane, simdgroup;

  uint index() const { return simdgroup * LANES + lane; }

  // synchronize blocks until all threads have arrived. It makes their writes visible.
  static void synchronize() {
    if (THREADS > 1) {
      threadgroup_barrier(mem_flags::mem_device | mem_flags::mem_threadgroup);
    }
  }
};

// A LeftMatrix is the left-hand operand of add_product: a matrix, or its transpose if TRANSPOSED. If SCALED, column k
// of the operand is multiplied by factors[k].
template <bool TRANSPOSED, bool SCALED>
struct LeftMatrix {
  device const float* elements;
  int stride;
  int rows, columns;  // of the stored matrix; elements beyond are zero
  device const float* factors;

  float at(int row, int column) const {
    return uint(row) < uint(rows) && uint(column) < uint(columns) ? elements[size_t(row) * stride + column] : 0.0f;
  }

  // load reads the operand's part from `first_row` and column `inner` on. If DIRECTION is -1, columns are in descending
  // order, and columns before the first are zero.
  template <int DIRECTION = 1, int LANES, int ROWS, int INNER>
  void load(thread Tile<LANES, ROWS, INNER>& tile, int first_row, int inner, uint lane) const {
    for (int i = 0; i < tile.LANE_ROWS; i++) {
      const int row = first_row + tile.row(i, lane);
      for (int j = 0; j < tile.LANE_COLUMNS; j++) {
        const int k = inner + DIRECTION * tile.column(j, lane);
        const float value = TRANSPOSED ? at(k, row) : at(row, k);
        tile.set(i, j, SCALED ? value * factors[DIRECTION < 0 ? max(k, 0) : k] : value);
      }
    }
  }
};

// A RightMatrix is the right-hand operand of a product: a matrix of `rows` rows that are STRIDE elements apart. Rows
// beyond are zero. If STRIDE is negative, the rows are in descending order, and so are the terms of a product.
template <int STRIDE>
struct RightMatrix {
  device const float* elements;
  int rows;

  RightMatrix<-STRIDE> descending() const { return {elements + (rows - 1) * STRIDE, rows}; }
};

// add_product adds left · right to sum, whose first row is row `first_row` of left. The product has INNER terms at a
// time. All threads of the team call it with the same `right`. `memory` is for a Panel<LANES, float, INNER, COLUMNS,
// STRIDE>.
template <int INNER, int LANES, int SIMDGROUPS, int ROWS, int COLUMNS, int STRIDE, typename LEFT>
inline void add_product(
    thread Tile<LANES, ROWS, COLUMNS>& sum,
    LEFT left,
    int first_row,
    RightMatrix<STRIDE> right,
    threadgroup float* memory,
    Team<LANES, SIMDGROUPS> team) {
  typedef Team<LANES, SIMDGROUPS> TEAM;
  constexpr int DIRECTION = STRIDE < 0 ? -1 : 1;
  const int first = STRIDE < 0 ? right.rows - 1 : 0;
  TEAM::synchronize();
  Panel<LANES, float, INNER, COLUMNS, STRIDE> panel;
  panel.init(memory, right.elements, right.rows, team.index(), TEAM::THREADS);
  for (int inner = 0; inner < right.rows; inner += INNER) {
    const int next = inner + INNER;
    acquire(panel);
    panel.advance(right.elements + next * STRIDE, right.rows - next, team.index(), TEAM::THREADS);
    commit(panel);
    Tile<LANES, ROWS, INNER> part;
    left.template load<DIRECTION>(part, first_row, first + DIRECTION * inner, team.lane);
    multiply_add(sum, part, panel, team.lane);
    finish<0>(sum);
  }
}

// add adds a tile to sum.
template <int LANES, int ROWS, int COLUMNS>
inline void add(thread Tile<LANES, ROWS, COLUMNS>& sum, thread Tile<LANES, ROWS, COLUMNS>& tile) {
  for (int i = 0; i < tile.LANE_ROWS; i++) {
    for (int j = 0; j < tile.LANE_COLUMNS; j++) {
      sum.set(i, j, sum.get(i, j) + tile.get(i, j));
    }
  }
}

// add_transposed_product adds left · rightᵀ to sum. left has `rows` rows from `left` on. The rows of both matrices have
// STRIDE elements, a multiple of INNER. `memory` is for a Panel<LANES, float, COLUMNS, INNER, STRIDE>.
template <int INNER, int LANES, int SIMDGROUPS, int ROWS, int COLUMNS, int STRIDE>
inline void add_transposed_product(
    thread Tile<LANES, ROWS, COLUMNS>& sum,
    device const float* left,
    int rows,
    RightMatrix<STRIDE> right,
    threadgroup float* memory,
    Team<LANES, SIMDGROUPS> team) {
  typedef Team<LANES, SIMDGROUPS> TEAM;
  TEAM::synchronize();
  Panel<LANES, float, COLUMNS, INNER, STRIDE> panel;
  panel.init(memory, right.elements, right.rows, team.index(), TEAM::THREADS);
  for (int inner = 0; inner < STRIDE; inner += INNER) {
    const int next = inner + INNER;
    acquire(panel);
    panel.advance(right.elements + next, next < STRIDE ? right.rows : 0, team.index(), TEAM::THREADS);
    commit(panel);
    Operand<LANES, float, ROWS, INNER> part;
    Tile<LANES, ROWS, COLUMNS> product;
    part.load(left + inner, STRIDE, rows, team.lane);
    multiply_transposed(product, part, panel, team.lane);
    finish<0>(product);
    add(sum, product);
  }
}

// scale_rows multiplies row i of a tile by factors[i].
template <int LANES, int ROWS, int COLUMNS>
inline void scale_rows(thread Tile<LANES, ROWS, COLUMNS>& tile, device const float* factors, uint lane) {
  float of_rows[Tile<LANES, ROWS, COLUMNS>::LANE_ROWS];
  for (int i = 0; i < tile.LANE_ROWS; i++) {
    of_rows[i] = factors[tile.row(i, lane)];
  }
  multiply_rows(tile, of_rows);
}

// add_row_products adds to sums, for each of the lane's rows, the lane's part of the product of the row with the same
// row of `other`, from row `first_row` and column `first_column` on. RowTotal adds the parts of all lanes. A long sum
// of floats would have larger rounding errors than the elements of the tile.
template <int LANES, int ROWS, int COLUMNS>
inline void add_row_products(
    thread DecaySum* sums,
    thread Tile<LANES, ROWS, COLUMNS>& tile,
    LeftMatrix<false, false> other,
    int first_row,
    int first_column,
    uint lane) {
  constexpr int PARTS = LANES == 1 ? 8 : 1;  // a CPU's vector
  Tile<LANES, ROWS, COLUMNS> rows;
  other.load(rows, first_row, first_column, lane);
  for (int i = 0; i < tile.LANE_ROWS; i++) {
    DecaySum parts[PARTS] = {};
    for (int j = 0; j < tile.LANE_COLUMNS; j += PARTS) {
      for (int n = 0; n < PARTS; n++) {
        parts[n].add_product(rows.get(i, j + n), tile.get(i, j + n));
      }
    }
    for (int n = 0; n < PARTS; n++) {
      sums[i].add_sum(parts[n]);
    }
  }
}

// A RowTotal returns the sum of a row's parts in all lanes.
template <typename TILE>
struct RowTotal {
  static float of(DecaySum sum) {
    sum.add_sum({simd_shuffle_xor(sum.high, TILE::SAME_ROW_BIT_0), simd_shuffle_xor(sum.low, TILE::SAME_ROW_BIT_0)});
    sum.add_sum({simd_shuffle_xor(sum.high, TILE::SAME_ROW_BIT_1), simd_shuffle_xor(sum.low, TILE::SAME_ROW_BIT_1)});
    return sum.total();
  }
};
template <int ROWS, int COLUMNS>
struct RowTotal<Tile<1, ROWS, COLUMNS>> {
  static float of(DecaySum sum) { return sum.total(); }
};

// add_rows adds the rows of `other`, from row `first_row` and column `first_column` on, row i multiplied by factors[i].
template <int LANES, int ROWS, int COLUMNS, typename FACTORS>
inline void add_rows(
    thread Tile<LANES, ROWS, COLUMNS>& sum,
    FACTORS factors,
    LeftMatrix<false, false> other,
    int first_row,
    int first_column,
    uint lane) {
  Tile<LANES, ROWS, COLUMNS> rows;
  other.load(rows, first_row, first_column, lane);
  for (int i = 0; i < rows.LANE_ROWS; i++) {
    const float factor = factors[rows.row(i, lane)];
    for (int j = 0; j < rows.LANE_COLUMNS; j++) {
      sum.set(i, j, sum.get(i, j) + factor * rows.get(i, j));
    }
  }
}

// store_rows writes the totals of the tile's rows before `rows`.
template <typename TILE, typename TO>
inline void store_rows(thread const DecaySum* sums, TO to, int rows, uint lane) {
  for (int i = 0; i < TILE::LANE_ROWS; i++) {
    const int row = TILE::row(i, lane);
    const float total = RowTotal<TILE>::of(sums[i]);
    if (row < rows && TILE::column(0, lane) == 0) {
      to[row] = total;
    }
  }
}
