// Transposes matrices: y[m][c][r] = x[m][r][c]. Elements are copied bit for bit, NaNs included.
//
// Reference: compare/oracle/transpose.go.
//
//   transpose_2d          A threadgroup moves tiles of TILE × TILE elements through threadgroup memory. It reads
//                         rows of x in vectors of VEC_X elements and writes rows of y in vectors of VEC_Y
//                         elements, so both matrices are accessed in stretches of TILE elements.
//   transpose_2d_vectors  The same for matrices whose rows and columns consist of whole vectors, which pass through
//                         threadgroup memory as a whole. If an address is not aligned, a thread copies single
//                         elements without staging.
//   transpose_2d_direct   A thread copies its share of the elements from x to y without staging. It is for
//                         matrices with a short axis. Their tiles would be almost empty, and their cache lines
//                         stay cached from one column to the next.
//
// Launch. In transpose_2d and transpose_2d_vectors, x, y and z of the grid count the groups along a column of x,
// along a row of x, and over the matrices. A GPU starts groups in the order of x, so groups that run at the same
// time write neighboring stretches of y. A group of transpose_2d advances by the size of the grid, so any number of
// groups is correct. The table calls the kernels tile, vectors and direct.
//
//   parameter       kernel   meaning                                     constraint
//   threadgroup     tile     GROUP_SIZE threads along x                  power of two, at most 1024
//   VEC_X, VEC_Y    tile     elements of a vector of x and of y          powers of two, at most TILE
//   TILE            tile     side of a tile                              power of two
//   threadgroup     vectors  GROUP_SIZE threads along x                  multiple of 32 and of TILE_COLUMNS/VEC
//   VEC             vectors  elements of a vector of 16 bytes            16 / sizeof(T)
//   TILE_ROWS       vectors  rows of x in a tile                         8·VEC times a power of two
//   TILE_COLUMNS    vectors  columns of x in a tile                      8·VEC times a power of two
//   elements        vectors  of a tile                                   multiple of 4·VEC·GROUP_SIZE/sizeof(T)
//   grid            vectors  groups                                      one per tile
//   rows, columns   vectors  size of a matrix                            multiples of VEC
//   grid            direct   threads along x                             any number
//   strip           direct   positions of the length axis in a strip     at least 1
//   elements        direct   elements of all matrices                    below 2³¹
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

// A tile in threadgroup memory, in vectors of VEC elements of a row. Vectors are exchanged within a row, so that eight
// lanes access different memory banks: lanes with neighboring vectors of a row, and lanes that read the same column of
// rows VEC apart. A word has the elements of a memory bank, which are neighbors in a row.
template <typename T, int VEC, int TILE_ROWS, int TILE_COLUMNS>
struct VectorTile {
  static constexpr constant uint ROW_VECS = TILE_COLUMNS / VEC;
  static constexpr constant uint SIZE = TILE_ROWS * ROW_VECS;  // in vectors
  static constexpr constant uint WORD = 4 / sizeof(T);
  static constexpr constant uint VEC_WORDS = VEC / WORD, ROW_WORDS = ROW_VECS * VEC_WORDS;
  typedef Vec<T, WORD> Word;

  threadgroup Vec<T, VEC>* vecs;

  // Returns the place of vector v of row r.
  static uint at(uint r, uint v) { return r * ROW_VECS + (v ^ r / VEC % 8); }

  // Returns word w of row r, where r is a multiple of VEC. The same word of the next VEC − 1 rows is ROW_WORDS apart.
  threadgroup const Word* word(uint r, uint w) const {
    return reinterpret_cast<threadgroup const Word*>(vecs) + at(r, w / VEC_WORDS) * VEC_WORDS + w % VEC_WORDS;
  }
};

// Copies height × width elements of x to the tile. Rows of x are `columns` elements apart.
template <int VEC, int GROUP_SIZE, typename TILE, typename T>
inline void load_vectors(device const T* x, size_t columns, uint height, uint width, TILE tile, uint thread_index) {
  constexpr uint steps = TILE::SIZE / GROUP_SIZE;
  const uint v = thread_index % TILE::ROW_VECS;
  Vec<T, VEC> vecs[steps] = {};  // all loads are issued before the first store
  for (uint i = 0; i < steps; i++) {
    const uint r = (i * GROUP_SIZE + thread_index) / TILE::ROW_VECS;
    if (r < height && v * VEC < width) {
      load_aligned_vec<VEC>(x + r * columns, v * VEC, vecs[i].values);
    }
  }
  for (uint i = 0; i < steps; i++) {
    tile.vecs[TILE::at((i * GROUP_SIZE + thread_index) / TILE::ROW_VECS, v)] = vecs[i];
  }
}

// Copies the transpose of the tile's height × width elements to y. Rows of y are `rows` elements apart. In each store
// of a simdgroup, 8 lanes write neighboring vectors of a row of y.
template <int VEC, int TILE_ROWS, int GROUP_SIZE, typename TILE, typename T>
inline void store_vectors(TILE tile, device T* y, size_t rows, uint height, uint width, uint thread_index) {
  constexpr uint stretches = TILE_ROWS / VEC / 8;  // of 8 vectors in a row of y
  for (uint step = 0; step < TILE::SIZE / TILE::WORD / GROUP_SIZE; step++) {
    const uint i = step * GROUP_SIZE + thread_index;
    const uint r = (i / 32 % stretches * 8 + i % 8) * VEC;
    const uint w = i / 32 / stretches * 4 + i % 32 / 8;
    threadgroup const typename TILE::Word* word = tile.word(r, w);
    typename TILE::Word words[VEC];
    for (int k = 0; k < VEC; k++) {
      words[k] = word[k * TILE::ROW_WORDS];
    }
    for (uint e = 0; e < TILE::WORD; e++) {
      T column[VEC];
      for (int k = 0; k < VEC; k++) {
        column[k] = words[k].values[e];
      }
      const uint c = w * TILE::WORD + e;
      if (r < height && c < width) {
        store_aligned_vec<VEC>(y + c * rows, r, column);
      }
    }
  }
}

template <typename T, int VEC, int TILE_ROWS, int TILE_COLUMNS, int GROUP_SIZE>
[[kernel]] void transpose_2d_vectors(
    device const T* x [[buffer(0)]],
    constant uint& rows [[buffer(1)]],
    constant uint& columns [[buffer(2)]],
    device T* y [[buffer(3)]],
    uint3 group [[threadgroup_position_in_grid]],
    uint thread_index [[thread_index_in_threadgroup]]) {
  typedef VectorTile<T, VEC, TILE_ROWS, TILE_COLUMNS> Tile;
  threadgroup Vec<T, VEC> vecs[Tile::SIZE];
  const Tile tile = {vecs};
  const size_t r0 = group.x * TILE_ROWS, c0 = group.y * TILE_COLUMNS;
  const uint height = min(uint(TILE_ROWS), uint(rows - r0)), width = min(uint(TILE_COLUMNS), uint(columns - c0));
  const size_t start = size_t(group.z) * rows * columns;
  x += start + r0 * columns + c0;
  y += start + c0 * rows + r0;

  if (vec_aligned<VEC>(x, columns) && vec_aligned<VEC>(y, rows)) {
    load_vectors<VEC, GROUP_SIZE>(x, columns, height, width, tile, thread_index);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    store_vectors<VEC, TILE_ROWS, GROUP_SIZE>(tile, y, rows, height, width, thread_index);
  } else {
    for (uint i = thread_index; i < height * width; i += GROUP_SIZE) {
      y[i / height * size_t(rows) + i % height] = x[i % height * size_t(columns) + i / height];
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
