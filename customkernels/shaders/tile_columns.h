// Tiles, panels and operands of one thread that are stored by columns, for tiles.h. Loops over the rows of a column
// become vectors, also where each row has a value of its own, and no operand of a product must be transposed.

template <int ROWS, int COLUMNS>
struct Tile<BY_COLUMNS, ROWS, COLUMNS> {
  static constexpr constant int LANE_ROWS = ROWS, LANE_COLUMNS = COLUMNS;
  alignas(64) Tile<1, COLUMNS, ROWS> transpose;
  int diagonal = -COLUMNS;  // see begin_diagonal

  static int row(int i, uint) { return i; }
  static int column(int j, uint) { return j; }
  float get(int i, int j) { return transpose.elements[j][i]; }
  void set(int i, int j, float value) { transpose.elements[j][i] = value; }
};

template <int ROWS, int COLUMNS>
struct ElementOrder<Tile<BY_COLUMNS, ROWS, COLUMNS>> {
  static constexpr constant int OUTER = COLUMNS, INNER = ROWS;

  static int row(int, int inner) { return inner; }
  static int column(int outer, int) { return outer; }
};

template <typename T, int ROWS, int COLUMNS, int STRIDE, int USES>
struct Panel<BY_COLUMNS, T, ROWS, COLUMNS, STRIDE, USES> : Panel<1, T, ROWS, COLUMNS, STRIDE, USES> {};

template <typename T, int ROWS, int COLUMNS>
struct Operand<BY_COLUMNS, T, ROWS, COLUMNS> : Tile<BY_COLUMNS, ROWS, COLUMNS> {
  void load(device const T* from, int stride, int rows, uint) {
#ifdef MLXG_THREAD_PRODUCTS
    mlxg::pack_columns<true, COLUMNS, ROWS>(from, stride, rows, this->transpose.elements);
#else
    for (int i = 0; i < ROWS; i++) {
      for (int j = 0; j < COLUMNS; j++) {
        this->transpose.elements[j][i] = i < rows ? float(from[size_t(i) * stride + j]) : 0.0f;
      }
    }
#endif
  }
};

// begin_diagonal declares that row i of a tile is 0 behind column i − diagonal. Products omit most of these elements.
template <int ROWS, int COLUMNS>
inline void begin_diagonal(thread Tile<BY_COLUMNS, ROWS, COLUMNS>& tile, int diagonal) {
  tile.diagonal = diagonal;
}

// add_eight_rows adds left · right to eight rows of a product. Each element is the sum of its terms in their order,
// which is then added. Row k of right is 0 before column k + diagonal.
template <int INNER, int COLUMNS>
inline void add_eight_rows(
    thread float (*sum)[COLUMNS],
    thread const float (&left)[8][INNER],
    thread const float (&right)[INNER][COLUMNS],
    int diagonal) {
  float products[COLUMNS][16];
  for (int c = 0; c < COLUMNS; c += 8) {
    multiply_block(left, 0, right, c, 0, clamp(c / 32 * 32 + 32 - diagonal, 0, INNER), products + c);
  }
  // The loop is separate for the same reason as in add_packed_product.
  for (int c = 0; c < COLUMNS; c += 8) {
    for (int i = 0; i < 8; i++) {
      for (int j = 0; j < 8; j++) {
        sum[i][c + j] += products[c + i][j];
      }
    }
  }
}

// These products compute their transposes: a column of the tile is a row of the panel, or a column of it, times the
// other tile.
template <int ROWS, int INNER, int COLUMNS, int USES, typename T>
inline void multiply_transposed(
    thread Tile<BY_COLUMNS, ROWS, COLUMNS>& product,
    thread Operand<BY_COLUMNS, T, ROWS, INNER>& left,
    thread const Panel<BY_COLUMNS, T, COLUMNS, INNER, INNER, USES>& right,
    uint) {
#ifdef MLXG_THREAD_PRODUCTS
  mlxg::multiply_rows<COLUMNS, INNER>(
      product.transpose.elements, right.current, right.current_rows, left.transpose.elements, product.diagonal);
#else
  fill(product, 0);
  for (int c = 0; c < COLUMNS; c += 8) {
    float rows[8][INNER];
    for (int i = 0; i < 8; i++) {
      right.get_row(c + i, rows[i]);
    }
    add_eight_rows(product.transpose.elements + c, rows, left.transpose.elements, -INNER);
  }
#endif
}

template <int ROWS, int INNER, int COLUMNS, int USES, typename T>
inline void multiply_add(
    thread Tile<BY_COLUMNS, ROWS, COLUMNS>& sum,
    thread Tile<BY_COLUMNS, ROWS, INNER>& left,
    thread const Panel<BY_COLUMNS, T, INNER, COLUMNS, COLUMNS, USES>& right,
    uint) {
#ifdef MLXG_THREAD_PRODUCTS
  mlxg::add_transposed_rows<false, COLUMNS, INNER>(
      sum.transpose.elements, right.current, right.current_rows, left.transpose.elements, left.diagonal);
#else
  for (int c = 0; c < COLUMNS; c += 8) {
    float columns[8][INNER];
    for (int k = 0; k < INNER; k++) {
      device const T* const row = right.current + k * COLUMNS + c;
      for (int i = 0; i < 8; i++) {
        columns[i][k] = k < right.current_rows ? float(row[i]) : 0.0f;
      }
    }
    add_eight_rows(sum.transpose.elements + c, columns, left.transpose.elements, left.diagonal);
  }
#endif
}

#ifdef MLXG_THREAD_PRODUCTS
template <int ROWS, int INNER, int COLUMNS, int USES, typename T>
inline void rescale_and_add(
    thread Tile<BY_COLUMNS, ROWS, COLUMNS>& sum,
    thread const float* factors,
    bool,
    thread Tile<BY_COLUMNS, ROWS, INNER>& left,
    thread const Panel<BY_COLUMNS, T, INNER, COLUMNS, COLUMNS, USES>& right,
    uint) {
  mlxg::add_transposed_rows<true, COLUMNS, INNER>(
      sum.transpose.elements, right.current, right.current_rows, left.transpose.elements, left.diagonal, factors);
}
#endif

// add_scaled_product adds scale · tileᵀ · right to the first `rows` rows of `to`. Rows of `right` and `to` have COLUMNS
// floats.
template <int COLUMNS, int INNER, int ROWS>
inline void add_scaled_product(
    device float* to,
    int rows,
    thread Tile<BY_COLUMNS, INNER, ROWS>& tile,
    threadgroup const float* right,
    float scale) {
#ifdef MLXG_THREAD_PRODUCTS
  mlxg::add_scaled_product<0, INNER, COLUMNS>(to, rows, tile.transpose.elements, right, scale, tile.diagonal);
#else
  for (int c = 0; c < COLUMNS; c += 8) {
    float packed[INNER][8];
    for (int k = 0; k < INNER; k++) {
      for (int j = 0; j < 8; j++) {
        packed[k][j] = right[k * COLUMNS + c + j];
      }
    }
    for (int m = 0; m < rows; m += 8) {
      float products[8][16];
      multiply_block(tile.transpose.elements, m, packed, 0, clamp(tile.diagonal + m, 0, INNER), INNER, products);
      for (int i = 0; i < 8 && m + i < rows; i++) {
        for (int j = 0; j < 8; j++) {
          to[size_t(m + i) * COLUMNS + c + j] += scale * products[i][j];
        }
      }
    }
  }
#endif
}

template <int ROWS, int COLUMNS, typename T>
inline void store(thread Tile<BY_COLUMNS, ROWS, COLUMNS>& tile, device T* to, int stride, int rows, uint) {
#ifdef MLXG_THREAD_PRODUCTS
  mlxg::store_transpose<ROWS, COLUMNS>(tile.transpose.elements, to, stride, rows);
#else
  for (int i = 0; i < ROWS && i < rows; i++) {
    for (int j = 0; j < COLUMNS; j++) {
      to[size_t(i) * stride + j] = T(tile.get(i, j));
    }
  }
#endif
}

template <int ROWS, int COLUMNS>
inline void row_max(thread Tile<BY_COLUMNS, ROWS, COLUMNS>& tile, thread float* largest) {
  for (int i = 0; i < ROWS; i++) {
    largest[i] = -INFINITY;
  }
  for (int j = 0; j < COLUMNS; j++) {
    for (int i = 0; i < ROWS; i++) {
      const float value = tile.transpose.elements[j][i];
      largest[i] = value > largest[i] ? value : largest[i];  // one instruction, because largest is not NaN
    }
  }
}

// sum_terms adds terms.get(i, j) over the columns j, in the order of the row_sum of a tile that is stored by rows.
template <int ROWS, int COLUMNS, typename TERMS>
inline void sum_terms(thread TERMS& terms, thread float* sums) {
  constexpr int WIDTH = ROWS < 16 ? ROWS : 16;
  for (int first = 0; first < ROWS; first += WIDTH) {
    float parts[8][WIDTH] = {};
    for (int j = 0; j < COLUMNS; j += 8) {
      for (int k = 0; k < 8; k++) {
        for (int i = 0; i < WIDTH; i++) {
          parts[k][i] += terms.get(first + i, j + k);
        }
      }
    }
    for (int n = 4; n > 0; n /= 2) {
      for (int k = 0; k < n; k++) {
        for (int i = 0; i < WIDTH; i++) {
          parts[k][i] += parts[k + n][i];
        }
      }
    }
    for (int i = 0; i < WIDTH; i++) {
      sums[first + i] = parts[0][i];
    }
  }
}

template <int ROWS, int COLUMNS>
inline void row_sum(thread Tile<BY_COLUMNS, ROWS, COLUMNS>& tile, thread float* sums) {
  sum_terms<ROWS, COLUMNS>(tile, sums);
}

// ProductTerms are the products of the elements of two tiles.
template <int ROWS, int COLUMNS>
struct ProductTerms {
  thread Tile<BY_COLUMNS, ROWS, COLUMNS>&a, &b;

  float get(int i, int j) { return a.get(i, j) * b.get(i, j); }
};

// row_dot sums the products of the elements of two tiles along rows.
template <int ROWS, int COLUMNS>
inline void row_dot(
    thread Tile<BY_COLUMNS, ROWS, COLUMNS>& a, thread Tile<BY_COLUMNS, ROWS, COLUMNS>& b, thread float* sums) {
  ProductTerms<ROWS, COLUMNS> products = {a, b};
  sum_terms<ROWS, COLUMNS>(products, sums);
}

template <int ROWS, int COLUMNS>
inline void column_sum(thread Tile<BY_COLUMNS, ROWS, COLUMNS>& tile, thread float* sums) {
  for (int j = 0; j < COLUMNS; j++) {
    sums[j] = 0;
    for (int i = 0; i < ROWS; i++) {
      sums[j] += tile.transpose.elements[j][i];
    }
  }
}
