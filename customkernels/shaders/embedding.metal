// The rows of a table by their numbers, and the table's gradient.
//
// Forward, for N ids and a table of V rows of width D:
//
//   y_n = weight_ids(n), NaN where ids(n) is not below V
//
// With dy the cotangent of y:
//
//   dweight_v = Σ_{n: ids(n)=v} dy_n
//
// Storage is T; sums are in float, in the order of the tokens n that share a row, in blocks.
//
// For the gradient the tokens are sorted by their slots, the rows of what is written: as
// keys slot·2³² + n, ascending. What belongs to no row has the slot behind the last. The
// tokens of a slot are then neighbours, a run.
//
//   embedding_keys              the keys of a table's gradient, before they are sorted
//   embedding_sorted_keys       the same sorted, for one thread
//   embedding_runs              where the run of every slot begins and ends; a slot
//                               without tokens keeps the zeros that it was launched on
//   embedding_backward_partial  the sums of those segments, pieces of fixed size, that lie
//                               in one run, so that many threads share a long run
//   embedding_backward          every slot: the tokens before the run's first whole
//                               segment, the sums of the segments, the tokens after
//                               them; without tokens zeros
//
// Launch (threads): groups of any size along x, and any number of them. In
// embedding_keys and embedding_runs a thread takes neighbouring tokens;
// embedding_sorted_keys is for a single one. In the others `threads` neighbouring threads share
// a row, a token's, segment's or slot's, and take another as far on as there are threads
// for; threads that are too few for a row do nothing. In a backward pass their R packs of
// C columns each make the row.
//
// Device traffic: forward N·D elements of T read and written; backward N·D read, V·D
// written and at most 2·D floats for each segment. Besides, 36 bytes for a token in
// embedding_keys and embedding_runs; and in every thread of the others 4 bytes for a
// token and 4 for a slot, 8 if it has tokens.

#include "rows.h"

inline uint slot_of(ulong key) {
  return uint(key >> 32);
}

// Which row is the i-th of a sum: the one that an order names, or row i itself.
struct Ordered {
  device const uint* order;

  uint row(uint i) const {
    return order[i];
  }
};
struct Consecutive {
  uint row(uint i) const {
    return i;
  }
};

// Adds a thread's columns of the rows [begin, end) to its sums, after adding up FEW at a time by
// themselves: a sum of n rows is rounded n/FEW + FEW times, not n times.
template <int C, int R, typename T, typename Rows>
inline void add_rows(
    device const T* values,
    Rows rows,
    uint begin,
    uint end,
    size_t first,
    size_t stride,
    size_t width,
    bool is_packed,
    thread float* sums) {
  enum { FEW = 4 };
  for (uint few = begin; few < end; few += FEW) {
    uint numbers[FEW];
    for (uint i = 0; i < FEW && few + i < end; i++) {
      numbers[i] = rows.row(few + i);
    }
    for (int p = 0; p < R && first + p * stride < width; p++) {
      float own[C] = {};
      for (uint i = 0; i < FEW && few + i < end; i++) {
        float row[C];
        read<C>(values + size_t(numbers[i]) * width, first + p * stride, width, is_packed, row);
        for (int k = 0; k < C; k++) {
          own[k] += row[k];
        }
      }
      for (int k = 0; k < C; k++) {
        sums[p * C + k] += own[k];
      }
    }
  }
}

template <int C, int R>
inline void clear(size_t first, size_t stride, size_t width, thread float* sums) {
  for (int p = 0; p < R && first + p * stride < width; p++) {
    for (int k = 0; k < C; k++) {
      sums[p * C + k] = 0;
    }
  }
}

template <int C, int R, typename T>
inline void write_row(device T* row, size_t first, size_t stride, size_t width, thread const float* sums) {
  const bool is_packed = packed<C>(row, width);
  for (int p = 0; p < R && first + p * stride < width; p++) {
    write<C>(row, first + p * stride, width, is_packed, sums + p * C);
  }
}

// Copies the pack at a column of a row, up to the row's end, without a change of a bit.
template <int C, typename T>
inline void copy(device const T* from, device T* to, size_t column, size_t width, bool is_packed) {
  if (is_packed) {
    const Pack<T, C> pack = reinterpret_cast<device const Pack<T, C>*>(from)[column / C];
    reinterpret_cast<device Pack<T, C>*>(to)[column / C] = pack;
  } else if (column + C <= width) {
    T values[C];
    for (int k = 0; k < C; k++) {
      values[k] = from[column + k];
    }
    for (int k = 0; k < C; k++) {
      to[column + k] = values[k];
    }
  } else {
    for (int k = 0; k < C && column + k < width; k++) {
      to[column + k] = from[column + k];
    }
  }
}

template <typename T, int C>
[[kernel]] void embedding(
    device const T* weight [[buffer(0)]],
    device const uint* ids [[buffer(1)]],
    constant uint& tokens [[buffer(2)]],
    constant uint& vocabulary [[buffer(3)]],
    constant uint& width [[buffer(4)]],
    constant uint& threads [[buffer(5)]],
    device T* y [[buffer(6)]],
    uint index [[thread_position_in_grid]],
    uint grid [[threads_per_grid]]) {
  const size_t first = size_t(index % threads) * C;
  const size_t stride = size_t(threads) * C;
  const bool is_packed = packed<C>(weight, width) && packed<C>(y, width);
  const uint line = index / threads;
  const uint lines = grid / threads;
  for (uint token = line; line < lines && token < tokens; token += lines) {
    device T* to = y + size_t(token) * width;
    const uint id = ids[token];
    const bool is_known = id < vocabulary;
    for (size_t column = first; column < width; column += stride) {
      if (is_known) {
        copy<C>(weight + size_t(id) * width, to, column, width, is_packed);
      } else {
        for (int k = 0; k < C && column + k < width; k++) {
          to[column + k] = T(NAN);
        }
      }
    }
  }
}

// keys[n] = slot·2³² + n, where an id is its own slot; what is out of range has the one
// behind the last.
[[kernel]] void embedding_keys(
    device const uint* ids [[buffer(0)]],
    constant uint& tokens [[buffer(1)]],
    constant uint& vocabulary [[buffer(2)]],
    device ulong* keys [[buffer(3)]],
    uint index [[thread_position_in_grid]],
    uint grid [[threads_per_grid]]) {
  const uint share = (tokens + grid - 1) / grid;
  for (uint i = index * share; i < min((index + 1) * share, tokens); i++) {
    keys[i] = ulong(min(ids[i], vocabulary)) << 32 | i;
  }
}

// Counts the tokens of every id in places, which begin as zeros, makes of the numbers
// where the id's first key belongs, and puts token after token there.
[[kernel]] void embedding_sorted_keys(
    device const uint* ids [[buffer(0)]],
    constant uint& tokens [[buffer(1)]],
    constant uint& vocabulary [[buffer(2)]],
    device ulong* keys [[buffer(3)]],
    device uint* places [[buffer(4)]]) {
  for (uint i = 0; i < tokens; i++) {
    places[min(ids[i], vocabulary)]++;
  }
  uint place = 0;
  for (uint id = 0; id <= vocabulary; id++) {
    const uint count = places[id];
    places[id] = place;
    place += count;
  }
  for (uint i = 0; i < tokens; i++) {
    const uint slot = min(ids[i], vocabulary);
    keys[places[slot]++] = ulong(slot) << 32 | i;
  }
}

// The tokens in the keys' order, and begin and end of every run in it but the one of the
// slot behind the last. The first run begins where the zeros say.
[[kernel]] void embedding_runs(
    device const ulong* keys [[buffer(0)]],
    constant uint& tokens [[buffer(1)]],
    constant uint& slots [[buffer(2)]],
    device uint* order [[buffer(3)]],
    device uint* begins [[buffer(4)]],
    device uint* ends [[buffer(5)]],
    uint index [[thread_position_in_grid]],
    uint grid [[threads_per_grid]]) {
  const uint share = (tokens + grid - 1) / grid;
  for (uint i = index * share; i < min((index + 1) * share, tokens); i++) {
    const uint slot = slot_of(keys[i]);
    const uint next = i + 1 < tokens ? slot_of(keys[i + 1]) : slots;
    order[i] = uint(keys[i]);
    if (next != slot) {
      ends[slot] = i + 1;
      if (next < slots) {
        begins[next] = i + 1;
      }
    }
  }
}

// partial[s] = Σ dy over the tokens of segment s, if they are all one slot's; else it is
// left alone, and nobody reads it.
template <typename T, int C, int R>
[[kernel]] void embedding_backward_partial(
    device const T* dy [[buffer(0)]],
    device const ulong* keys [[buffer(1)]],
    device const uint* order [[buffer(2)]],
    constant uint& slots [[buffer(3)]],
    constant uint& segment [[buffer(4)]],
    constant uint& segments [[buffer(5)]],
    constant uint& width [[buffer(6)]],
    constant uint& threads [[buffer(7)]],
    device float* partial [[buffer(8)]],
    uint index [[thread_position_in_grid]],
    uint grid [[threads_per_grid]]) {
  const size_t first = size_t(index % threads) * C;
  const size_t stride = size_t(threads) * C;
  const bool is_packed = packed<C>(dy, width);
  const uint line = index / threads;
  const uint lines = grid / threads;
  for (uint s = line; line < lines && s < segments; s += lines) {
    const uint begin = s * segment;
    const uint slot = slot_of(keys[begin]);
    if (slot < slots && slot == slot_of(keys[begin + segment - 1])) {
      float sums[R * C];
      clear<C, R>(first, stride, width, sums);
      add_rows<C, R>(dy, Ordered{order}, begin, begin + segment, first, stride, width, is_packed, sums);
      write_row<C, R>(partial + size_t(s) * width, first, stride, width, sums);
    }
  }
}

template <typename T, int C, int R>
[[kernel]] void embedding_backward(
    device const T* dy [[buffer(0)]],
    device const uint* order [[buffer(1)]],
    device const uint* begins [[buffer(2)]],
    device const uint* ends [[buffer(3)]],
    device const float* partial [[buffer(4)]],
    constant uint& slots [[buffer(5)]],
    constant uint& segment [[buffer(6)]],
    constant uint& width [[buffer(7)]],
    constant uint& threads [[buffer(8)]],
    device T* dweight [[buffer(9)]],
    uint index [[thread_position_in_grid]],
    uint grid [[threads_per_grid]]) {
  const size_t first = size_t(index % threads) * C;
  const size_t stride = size_t(threads) * C;
  const bool is_packed = packed<C>(dy, width);
  const uint line = index / threads;
  const uint lines = grid / threads;
  for (uint slot = line; line < lines && slot < slots; slot += lines) {
    float sums[R * C];
    clear<C, R>(first, stride, width, sums);
    const uint end = ends[slot];
    if (end > 0) {
      const uint begin = begins[slot];
      // The whole segments, and where the tokens before them end. There may be none.
      const uint from = (begin + segment - 1) / segment;
      const uint to = end / segment;
      const uint head = min(from * segment, end);
      const Ordered rows = Ordered{order};
      add_rows<C, R>(dy, rows, begin, head, first, stride, width, is_packed, sums);
      add_rows<C, R>(partial, Consecutive{}, from, to, first, stride, width, packed<C>(partial, width), sums);
      add_rows<C, R>(dy, rows, max(head, to * segment), end, first, stride, width, is_packed, sums);
    }
    write_row<C, R>(dweight + size_t(slot) * width, first, stride, width, sums);
  }
}
