// Tiles and panels of a simdgroup of 32 lanes on Metal's simdgroup_matrix, for tiles.h.

template <int ROWS, int COLUMNS>
struct Tile<32, ROWS, COLUMNS> {
  static constexpr constant int LANE_ROWS = ROWS / 8, LANE_COLUMNS = COLUMNS / 4;
  // The indices of lanes that share a row differ only in the SAME_ROW bits. The indices of lanes that share a column
  // differ only in the SAME_COLUMN bits.
  static constexpr constant int SAME_ROW_BIT_0 = 1, SAME_ROW_BIT_1 = 8;
  static constexpr constant int SAME_COLUMN_BIT_0 = 2, SAME_COLUMN_BIT_1 = 4, SAME_COLUMN_BIT_2 = 16;
  simdgroup_matrix<float, 8, 8> fragments[ROWS / 8][COLUMNS / 8];

  static int row(int i, uint lane) { return 8 * i + int((lane / 4 & 4) + lane / 2 % 4); }
  static int column(int j, uint lane) { return 8 * (j / 2) + int((lane / 4 & 2) * 2 + lane % 2 * 2) + j % 2; }
  float get(int i, int j) { return fragments[i][j / 2].thread_elements()[j % 2]; }
  void set(int i, int j, float value) { fragments[i][j / 2].thread_elements()[j % 2] = value; }
};

// This Panel has one buffer in threadgroup memory. advance fills it from the previous source and prefetches nothing.
template <typename T, int ROWS, int COLUMNS, int STRIDE, int USES>
struct Panel<32, T, ROWS, COLUMNS, STRIDE, USES> {
  static constexpr constant bool PREFETCHES = false;
  static constexpr constant int SIZE = ROWS * COLUMNS;  // elements of threadgroup memory
  threadgroup T* memory;
  device const T* next;
  int next_rows;

  static void synchronize() { threadgroup_barrier(mem_flags::mem_threadgroup); }
  static void publish() { synchronize(); }

  void init(threadgroup T* to, device const T* first, int rows, uint, uint) {
    memory = to;
    next = first;
    next_rows = rows;
  }

  void advance(device const T* from, int rows, uint thread_index, uint threads) {
    const int vec = COLUMNS % 8 == 0 ? 8 : 1;
    const bool is_packed = vec_aligned<vec>(next, STRIDE);
    for (uint i = thread_index * vec; i < ROWS * COLUMNS; i += threads * vec) {
      T values[vec];
      if (int(i / COLUMNS) < next_rows) {
        load_vec<vec>(next + int(i / COLUMNS) * STRIDE, i % COLUMNS, COLUMNS, is_packed, values);
      } else {
        for (int k = 0; k < vec; k++) {
          values[k] = T(0);
        }
      }
      for (int k = 0; k < vec; k++) {
        memory[i + k] = values[k];
      }
    }
    next = from;
    next_rows = rows;
  }

  void get_row(int row, thread float* to) const {
    for (int c = 0; c < COLUMNS; c++) {
      to[c] = float(memory[row * COLUMNS + c]);
    }
  }
};

// add_product adds left · right, or left · rightᵀ if TRANSPOSED, to sum.
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
    thread Tile<32, ROWS, COLUMNS>& sum,
    thread Tile<32, ROWS, INNER>& left,
    thread const Panel<32, T, PANEL_ROWS, PANEL_COLUMNS, STRIDE, USES>& right,
    uint lane) {
  const int row = sum.row(0, lane);
  const int column = sum.column(0, lane);
  for (int c = 0; c < COLUMNS; c += 8) {
    simdgroup_matrix<float, 8, 8> products[ROWS / 8];
    for (int m = 0; m < ROWS / 8; m++) {
      products[m] = make_filled_simdgroup_matrix<float, 8, 8>(0);
    }
    for (int k = 0; k < INNER; k += 8) {
      simdgroup_matrix<float, 8, 8> fragment;
      for (int e = 0; e < 2; e++) {
        const int panel_row = TRANSPOSED ? c + column + e : k + row;
        const int panel_column = TRANSPOSED ? k + row : c + column + e;
        fragment.thread_elements()[e] = float(right.memory[panel_row * PANEL_COLUMNS + panel_column]);
      }
      for (int m = 0; m < ROWS / 8; m++) {
        simdgroup_multiply_accumulate(products[m], left.fragments[m][k / 8], fragment, products[m]);
      }
    }
    for (int m = 0; m < ROWS / 8; m++) {
      for (int e = 0; e < 2; e++) {
        sum.fragments[m][c / 8].thread_elements()[e] += products[m].thread_elements()[e];
      }
    }
  }
}
