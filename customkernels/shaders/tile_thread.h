// Tiles and panels of a simdgroup of one lane, for tiles.h. The compiler vectorizes the loops for a CPU.

#include "packed_product.h"

template <int ROWS, int COLUMNS>
struct Tile<1, ROWS, COLUMNS> {
  static constexpr constant int LANE_ROWS = ROWS, LANE_COLUMNS = COLUMNS;
  float elements[ROWS][COLUMNS];

  static int row(int i, uint) { return i; }
  static int column(int j, uint) { return j; }
  float get(int i, int j) { return elements[i][j]; }
  void set(int i, int j, float value) { elements[i][j] = value; }
};

// A Panel of one thread reads its rows in place and uses no threadgroup memory.
template <typename T, int ROWS, int COLUMNS, int STRIDE, int USES>
struct Panel<1, T, ROWS, COLUMNS, STRIDE, USES> {
  static constexpr constant bool PREFETCHES = false;
  static constexpr constant int SIZE = 1;
  device const T* current;
  int current_rows;
  device const T* next;
  int next_rows;

  static void synchronize() {}
  static void publish() {}

  void init(threadgroup T*, device const T* first, int rows, uint, uint) {
    next = first;
    next_rows = rows;
  }

  void advance(device const T* from, int rows, uint, uint) {
    current = next;
    current_rows = next_rows;
    next = from;
    next_rows = rows;
  }

  void get_row(int row, thread float* to) const {
    for (int c = 0; c < COLUMNS; c++) {
      to[c] = row < current_rows ? float(current[row * STRIDE + c]) : 0.0f;
    }
  }
};

// add_product adds left · right, or left · rightᵀ if TRANSPOSED, to sum. Eight columns of the panel, converted to
// float, stay in the cache for all rows. An executor that defines MLXG_THREAD_PRODUCTS does the same with its vector
// registers.
template <
    bool TRANSPOSED,
    int ROWS,
    int INNER,
    int COLUMNS,
    typename T,
    int PANEL_ROWS,
    int PANEL_COLUMNS,
    int STRIDE,
    int USES>
inline void add_product(
    thread Tile<1, ROWS, COLUMNS>& sum,
    thread Tile<1, ROWS, INNER>& left,
    thread const Panel<1, T, PANEL_ROWS, PANEL_COLUMNS, STRIDE, USES>& panel,
    uint) {
#ifdef MLXG_THREAD_PRODUCTS
  mlxg::add_product<TRANSPOSED, 0, ROWS, INNER, COLUMNS>(
      sum.elements, left.elements, panel.current, STRIDE, panel.current_rows);
#else
  for (int c = 0; c < COLUMNS; c += 8) {
    float right[INNER][8];
    if (TRANSPOSED) {
      for (int j = 0; j < 8; j++) {
        device const T* const row = panel.current + (c + j) * STRIDE;
        for (int k = 0; k < INNER; k++) {
          right[k][j] = c + j < panel.current_rows ? float(row[k]) : 0.0f;
        }
      }
    } else {
      for (int k = 0; k < INNER; k++) {
        device const T* const row = panel.current + k * STRIDE + c;
        for (int j = 0; j < 8; j++) {
          right[k][j] = k < panel.current_rows ? float(row[j]) : 0.0f;
        }
      }
    }
    add_packed_product(&sum.elements[0][c], COLUMNS, left.elements, right, ROWS, INNER);
  }
#endif
}
