// The transposes of matrices: y[m][c][r] = x[m][r][c]. Elements are moved as they are,
// whatever their bits mean.
//
//   transpose_2d         a threadgroup moves tiles of E × E elements: it reads rows of x,
//                        neighbouring threads neighbouring packs of CX elements, into
//                        threadgroup memory, and writes rows of y from there in packs
//                        of CY. So both matrices are read and written a stretch of E
//                        elements at a time
//   transpose_2d_blocks  a thread moves blocks of C × C elements through its registers, in
//                        packs, and simdgroups blocks that lie together, 4 beside each
//                        other and 8 below. For matrices of whole blocks
//   transpose_2d_direct  a thread moves its share of elements straight from x to y: for
//                        matrices that would leave a tile all but empty, and of which
//                        caches keep the lines from one column to the next
//
// Launch (threads): transpose_2d in groups of N along x, a power of two up to 1024; along
// the grid's axes, groups for the tiles of a row of x, for those of a column, and for
// the matrices. A group goes on by the size of the grid, so any number of groups is
// right, and so are any powers of two for CX and CY up to E. transpose_2d_blocks likewise,
// with X blocks of a group along a row of x and N/X along a column: X a multiple of 4, N
// of 8·X. transpose_2d_direct in any grid along x, with strips of any length, for less than
// 2³¹ elements. Indices are size_t: see rms_norm_backward.metal.
//
// Device traffic: every element is read once and written once.

#include "rows.h"

// Where the tile keeps an element. A row begins one bank of four bytes farther than a
// multiple of 32 of them from the row before, and three more after 32 rows: so threads
// side by side meet different banks, along a row and across rows, whatever their packs'
// size.
template <typename T, int E>
inline size_t place(size_t r, size_t c) {
  constexpr size_t bank = 4 / sizeof(T);
  return r * (E + bank) + (E > 32 ? r / 32 * 3 * bank : 0) + c;
}

template <typename T, int CX, int CY, int E, int N>
[[kernel]] void transpose_2d(
    device const T* x [[buffer(0)]],
    constant uint& matrices [[buffer(1)]],
    constant uint& rows [[buffer(2)]],
    constant uint& columns [[buffer(3)]],
    device T* y [[buffer(4)]],
    uint3 group [[threadgroup_position_in_grid]],
    uint3 groups [[threadgroups_per_grid]],
    uint thread_index [[thread_index_in_threadgroup]]) {
  threadgroup T tile[E * (E + 4)];
  const bool x_packed = packed<CX>(x, columns);
  const bool y_packed = packed<CY>(y, rows);
  // The threads that share a row, and the rows that the group works on at once.
  constexpr size_t x_lanes = N < E / CX ? N : E / CX;
  constexpr size_t y_lanes = N < E / CY ? N : E / CY;
  constexpr size_t x_rows = N / x_lanes;
  constexpr size_t y_rows = N / y_lanes;

  for (uint m = group.z; m < matrices; m += groups.z) {
    const size_t start = size_t(m) * rows * columns;
    for (size_t r0 = size_t(group.y) * E; r0 < rows; r0 += size_t(groups.y) * E) {
      for (size_t c0 = size_t(group.x) * E; c0 < columns; c0 += size_t(groups.x) * E) {
        const size_t height = min(size_t(E), rows - r0);
        const size_t width = min(size_t(E), columns - c0);
        for (size_t r = thread_index / x_lanes; r < height; r += x_rows) {
          device const T* row = x + start + (r0 + r) * columns;
          for (size_t c = thread_index % x_lanes * CX; c < width; c += x_lanes * CX) {
            T values[CX];
            read<CX>(row, c0 + c, columns, x_packed, values);
            for (int k = 0; k < CX; k++) {
              tile[place<T, E>(r, c + k)] = values[k];
            }
          }
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
        for (size_t c = thread_index / y_lanes; c < width; c += y_rows) {
          device T* row = y + start + (c0 + c) * rows;
          for (size_t r = thread_index % y_lanes * CY; r < height; r += y_lanes * CY) {
            T values[CY];
            for (int k = 0; k < CY; k++) {
              values[k] = tile[place<T, E>(r + k, c)];
            }
            write<CY>(row, r0 + r, rows, y_packed, values);
          }
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
      }
    }
  }
}

template <typename T, int C, int X, int N>
[[kernel]] void transpose_2d_blocks(
    device const T* x [[buffer(0)]],
    constant uint& matrices [[buffer(1)]],
    constant uint& rows [[buffer(2)]],
    constant uint& columns [[buffer(3)]],
    device T* y [[buffer(4)]],
    uint3 group [[threadgroup_position_in_grid]],
    uint3 groups [[threadgroups_per_grid]],
    uint thread_index [[thread_index_in_threadgroup]]) {
  const bool is_packed = packed<C>(x, columns) && packed<C>(y, rows);
  const uint simdgroup = thread_index / 32;
  const size_t block_x = simdgroup % (X / 4) * 4 + thread_index % 4;
  const size_t block_y = simdgroup / (X / 4) * 8 + thread_index % 32 / 4;

  for (uint m = group.z; m < matrices; m += groups.z) {
    const size_t start = size_t(m) * rows * columns;
    for (size_t r = (group.y * (N / X) + block_y) * C; r < rows; r += groups.y * size_t(N / X * C)) {
      for (size_t c = (group.x * X + block_x) * C; c < columns; c += groups.x * size_t(X * C)) {
        T block[C][C];
        for (int i = 0; i < C; i++) {
          read<C>(x + start + (r + i) * columns, c, c + C, is_packed, block[i]);
        }
        for (int k = 0; k < C; k++) {
          T column[C];
          for (int i = 0; i < C; i++) {
            column[i] = block[i][k];
          }
          write<C>(y + start + (c + k) * rows, r, r + C, is_packed, column);
        }
      }
    }
  }
}

// The matrices have `length` rows of `others` elements, if y GATHERS what is far apart in x,
// or `others` rows of `length`, each a stretch of x that is scattered in y. Elements count
// in strips, matrix by matrix: strip · others places of the length, and then the next.
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
    const uint first = in_matrix / (strip * others) * strip;
    const uint places = min(strip, length - first);
    const uint in_strip = in_matrix - first * others;
    const size_t at = first + in_strip % places;
    const size_t other = in_strip / places;
    const size_t run = min(size_t(places - in_strip % places), end - i);
    // The same element in rows of `length` and in rows of `others`.
    const size_t along = i - in_matrix + other * length + at;
    const size_t across = i - in_matrix + at * others + other;
    // Of 32 bits, so that no processor puts vectors together out of far elements.
    uint place = uint(across);
    const uint stride = others;
    for (size_t k = 0; k < run; k++, place += stride) {
      if (GATHERS) {
        y[along + k] = x[place];
      } else {
        y[place] = x[along + k];
      }
    }
    i += run;
  }
}
