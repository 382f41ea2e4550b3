// Transposes matrices: y[m][c][r] = x[m][r][c]. Elements are copied bit for bit, NaNs included.
//
// Reference: compare/oracle/transpose.go.
//
//   transpose_2d         A threadgroup moves tiles of TILE × TILE elements through threadgroup memory. It reads
//                        rows of x in vectors of VEC_X elements and writes rows of y in vectors of VEC_Y
//                        elements, so both matrices are accessed in stretches of TILE elements.
//   transpose_2d_blocks  A thread moves blocks of VEC × VEC elements through its registers. The blocks of a
//                        simdgroup form a rectangle of 4 blocks along a row of x and 8 along a column.
//   transpose_2d_direct  A thread copies its share of the elements from x to y without staging. It is for
//                        matrices with a short axis. Their tiles would be almost empty, and their cache lines
//                        stay cached from one column to the next.
//
// Launch. In transpose_2d and transpose_2d_blocks, x, y and z of the grid count the groups along a column of x,
// along a row of x, and over the matrices. A GPU starts groups in the order of x, so groups that run at the same
// time write neighboring stretches of y. A group advances by the size of the grid, so any number of groups is
// correct. The table calls the kernels tile, blocks and direct.
//
//   parameter       kernel  meaning                                     constraint
//   threadgroup     tile    GROUP_SIZE threads along x                  power of two, at most 1024
//   VEC_X, VEC_Y    tile    elements of a vector of x and of y          powers of two, at most TILE
//   TILE            tile    side of a tile                              power of two
//   threadgroup     blocks  GROUP_SIZE threads along x                  multiple of 8·BLOCKS_PER_ROW
//   BLOCKS_PER_ROW  blocks  blocks of a group along a row of x          multiple of 4
//   rows, columns   blocks  size of a matrix                            multiples of VEC
//   grid            direct  threads along x                             any number
//   strip           direct  positions of the length axis in a strip     at least 1
//   elements        direct  elements of all matrices                    below 2³¹
//
// Indices are size_t because a uint may wrap around at 2³², which keeps compilers from vectorizing loops.
//
// Device traffic: each element is read once and written once.

#include "vectors.h"

// Returns the index in threadgroup memory of the tile element at row r and column c. The distance between neighboring
// rows is a multiple of 32 banks (of 4 bytes) plus one bank, and three banks more after every 32 rows. Neighboring
// threads therefore access different banks along a row and across rows, for every vector size.
template <typename T, int TILE>
inline size_t tile_index(size_t r, size_t c) {
  constexpr size_t bank = 4 / sizeof(T);
  return r * (TILE + bank) + (TILE > 32 ? r / 32 * 3 * bank : 0) + c;
}

// ROW_THREADS threads share a row of a tile, in vectors of VEC elements. A group moves ROWS_PER_STEP rows at a time.
template <int VEC, int TILE, int GROUP_SIZE>
struct TileRows {
  static constexpr constant size_t ROW_THREADS = GROUP_SIZE < TILE / VEC ? GROUP_SIZE : TILE / VEC;
  static constexpr constant size_t ROWS_PER_STEP = GROUP_SIZE / ROW_THREADS;
};

// Copies height × width elements of x, which begin at row r0 and column c0, to the tile.
template <int VEC, int TILE, int GROUP_SIZE, typename T>
inline void load_tile(
    device const T* x,
    size_t r0,
    size_t c0,
    size_t columns,
    size_t height,
    size_t width,
    bool is_aligned,
    threadgroup T* tile,
    uint thread_index) {
  typedef TileRows<VEC, TILE, GROUP_SIZE> Rows;
  for (size_t r = thread_index / Rows::ROW_THREADS; r < height; r += Rows::ROWS_PER_STEP) {
    device const T* row = x + (r0 + r) * columns;
    for (size_t c = thread_index % Rows::ROW_THREADS * VEC; c < width; c += Rows::ROW_THREADS * VEC) {
      T values[VEC];
      load_vec<VEC>(row, c0 + c, columns, is_aligned, values);
      for (int k = 0; k < VEC; k++) {
        tile[tile_index<T, TILE>(r, c + k)] = values[k];
      }
    }
  }
}

// Copies the transpose of the tile's height × width elements to y, beginning at row c0 and column r0. A row of y has
// `rows` elements.
template <int VEC, int TILE, int GROUP_SIZE, typename T>
inline void store_tile(
    threadgroup const T* tile,
    device T* y,
    size_t r0,
    size_t c0,
    size_t rows,
    size_t height,
    size_t width,
    bool is_aligned,
    uint thread_index) {
  typedef TileRows<VEC, TILE, GROUP_SIZE> Rows;
  for (size_t c = thread_index / Rows::ROW_THREADS; c < width; c += Rows::ROWS_PER_STEP) {
    device T* row = y + (c0 + c) * rows;
    for (size_t r = thread_index % Rows::ROW_THREADS * VEC; r < height; r += Rows::ROW_THREADS * VEC) {
      T values[VEC];
      for (int k = 0; k < VEC; k++) {
        values[k] = tile[tile_index<T, TILE>(r + k, c)];
      }
      store_vec<VEC>(row, r0 + r, rows, is_aligned, values);
    }
  }
}

template <typename T, int VEC_X, int VEC_Y, int TILE, int GROUP_SIZE>
[[kernel]] void transpose_2d(
    device const T* x [[buffer(0)]],
    constant uint& matrices [[buffer(1)]],
    constant uint& rows [[buffer(2)]],
    constant uint& columns [[buffer(3)]],
    device T* y [[buffer(4)]],
    uint3 group [[threadgroup_position_in_grid]],
    uint3 groups [[threadgroups_per_grid]],
    uint thread_index [[thread_index_in_threadgroup]]) {
  threadgroup T tile[TILE * (TILE + 4)];
  const bool x_aligned = vec_aligned<VEC_X>(x, columns);
  const bool y_aligned = vec_aligned<VEC_Y>(y, rows);

  for (uint m = group.z; m < matrices; m += groups.z) {
    const size_t start = size_t(m) * rows * columns;
    for (size_t r0 = size_t(group.x) * TILE; r0 < rows; r0 += size_t(groups.x) * TILE) {
      for (size_t c0 = size_t(group.y) * TILE; c0 < columns; c0 += size_t(groups.y) * TILE) {
        const size_t height = min(size_t(TILE), rows - r0);
        const size_t width = min(size_t(TILE), columns - c0);
        load_tile<VEC_X, TILE, GROUP_SIZE>(x + start, r0, c0, columns, height, width, x_aligned, tile, thread_index);
        threadgroup_barrier(mem_flags::mem_threadgroup);
        store_tile<VEC_Y, TILE, GROUP_SIZE>(tile, y + start, r0, c0, rows, height, width, y_aligned, thread_index);
        threadgroup_barrier(mem_flags::mem_threadgroup);
      }
    }
  }
}

template <typename T, int VEC, int BLOCKS_PER_ROW, int GROUP_SIZE>
[[kernel]] void transpose_2d_blocks(
    device const T* x [[buffer(0)]],
    constant uint& matrices [[buffer(1)]],
    constant uint& rows [[buffer(2)]],
    constant uint& columns [[buffer(3)]],
    device T* y [[buffer(4)]],
    uint3 group [[threadgroup_position_in_grid]],
    uint3 groups [[threadgroups_per_grid]],
    uint thread_index [[thread_index_in_threadgroup]]) {
  const bool is_aligned = vec_aligned<VEC>(x, columns) && vec_aligned<VEC>(y, rows);
  constexpr int blocks_per_column = GROUP_SIZE / BLOCKS_PER_ROW;
  const uint simdgroup = thread_index / 32;
  const size_t block_x = simdgroup % (BLOCKS_PER_ROW / 4) * 4 + thread_index % 4;
  const size_t block_y = simdgroup / (BLOCKS_PER_ROW / 4) * 8 + thread_index % 32 / 4;
  const size_t row_step = groups.x * size_t(blocks_per_column * VEC);
  const size_t column_step = groups.y * size_t(BLOCKS_PER_ROW * VEC);

  for (uint m = group.z; m < matrices; m += groups.z) {
    const size_t start = size_t(m) * rows * columns;
    for (size_t r = (group.x * blocks_per_column + block_y) * VEC; r < rows; r += row_step) {
      for (size_t c = (group.y * BLOCKS_PER_ROW + block_x) * VEC; c < columns; c += column_step) {
        T block[VEC][VEC];
        for (int i = 0; i < VEC; i++) {
          load_vec<VEC>(x + start + (r + i) * columns, c, c + VEC, is_aligned, block[i]);
        }
        for (int k = 0; k < VEC; k++) {
          T column[VEC];
          for (int i = 0; i < VEC; i++) {
            column[i] = block[i][k];
          }
          store_vec<VEC>(y + start + (c + k) * rows, r, r + VEC, is_aligned, column);
        }
      }
    }
  }
}

// An element of a matrix with the axes `length` and `others`, in strip order.
struct StripElement {
  size_t position;  // along the length axis
  size_t other;     // along the other axis
  uint left;        // elements with the same `other` from this one to the end of the strip
};

// Returns element `index` of a matrix in strip order. The length axis is cut into strips of `strip` positions. The
// order is strip by strip; in a strip, one value of the other axis after the other; then position by position.
inline StripElement strip_element(uint index, uint length, uint others, uint strip) {
  const uint first = index / (strip * others) * strip;
  const uint positions = min(strip, length - first);
  const uint in_strip = index - first * others;
  const uint offset = in_strip % positions;
  return StripElement{first + offset, in_strip / positions, positions - offset};
}

// `length` and `others` are the axes of a matrix. With GATHERS, x is [length, others]: a thread reads x with the
// stride `others` and writes y consecutively. Without GATHERS, x is [others, length]: a thread reads x consecutively
// and writes y with the stride `others`. A thread copies consecutive elements in strip order (strip_element).
//
// Example with GATHERS, length = 5, others = 2, strip = 3, and 2 threads with a share of 5 elements each. x_pq is
// the element of x at position p and other q.
//
//   strip order   x_00 x_10 x_20 x_01 x_11 | x_21 x_30 x_40 x_31 x_41
//   strip         0    0    0    0    0    | 0    1    1    1    1
//   source in x   0    2    4    1    3    | 5    6    8    7    9       p·others + q
//   target in y   0    1    2    5    6    | 7    3    4    8    9       q·length + p
//
// Thread 0 moves two runs, of 3 and 2 elements; thread 1 moves three runs, of 1, 2 and 2.
template <typename T, bool GATHERS>
[[kernel]] void transpose_2d_direct(
    device const T* x [[buffer(0)]],
    constant uint& elements [[buffer(1)]],
    constant uint& length [[buffer(2)]],
    constant uint& others [[buffer(3)]],
    constant uint& strip [[buffer(4)]],
    device T* y [[buffer(5)]],
    uint thread_position [[thread_position_in_grid]],
    uint threads [[threads_per_grid]]) {
  const uint share = (elements + threads - 1) / threads;
  const size_t begin = size_t(thread_position) * share;
  const size_t end = min(begin + share, size_t(elements));
  for (size_t i = begin; i < end;) {
    const uint in_matrix = uint(i) % (length * others);
    const size_t matrix = i - in_matrix;
    const StripElement e = strip_element(in_matrix, length, others, strip);
    const size_t run = min(size_t(e.left), end - i);
    const size_t consecutive = matrix + e.other * length + e.position;
    // A 32-bit index keeps compilers from assembling vectors out of distant elements.
    uint strided = uint(matrix + e.position * others + e.other);
    const uint stride = others;
    for (size_t k = 0; k < run; k++, strided += stride) {
      if (GATHERS) {
        y[consecutive + k] = x[strided];
      } else {
        y[strided] = x[consecutive + k];
      }
    }
    i += run;
  }
}
