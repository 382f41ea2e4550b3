// Embedding lookup: rows of a table by id, and the gradient of the table.
//
// For N ids and a table `weight` of V rows of width D, with dy the cotangent of y:
//
//   y_n       = weight_ids(n), or NaN if ids(n) is not below V
//   dweight_v = Σ_{n: ids(n)=v} dy_n
//
// Storage is T. Sums are in float and add the tokens n of a table row in ascending order, in blocks (see add_rows).
//
// Reference: compare/oracle/embedding.go.
//
// For the gradient, the tokens are sorted by slot, the index of an output row, as keys slot·2³² + n in ascending
// order. Ids out of range have the slot after the last one. The consecutive tokens of a slot are a run. The sorted
// tokens are also divided into segments of a fixed number of tokens, so that many threads share a long run.
//
//   embedding_keys              the unsorted keys of a table's gradient
//   embedding_sorted_keys       the sorted keys, computed by one thread
//   embedding_runs              begin and end of the run of each slot; a slot without tokens keeps the zeros that
//                               the launch initializes it with
//   embedding_backward_partial  the sum of each segment that lies in one run
//   embedding_backward          one row per slot: the sum of the tokens before the run's first whole segment, of
//                               its whole segments and of the tokens after them; zeros for a slot without tokens
//
// Launch:
//
//   parameter        meaning                                          constraint
//   grid             threads along x                                  any number; embedding_sorted_keys: one thread
//   threads          neighboring threads that share a row             at least 1; leftover threads of the grid are idle
//   VEC              elements of a vector                             power of two
//   VECS_PER_THREAD  vectors of a row that a thread adds up           threads·VECS_PER_THREAD·VEC at least D
//   segment          tokens in a segment                              at least 1
//
// In embedding_keys and embedding_runs a thread takes consecutive tokens. In the other kernels `threads` neighboring
// threads share a row (of a token, segment or slot) and advance by the number of rows that the grid covers.
//
// Device traffic. Forward: N·D elements of T read and N·D written. Backward: N·D read, V·D written, and at most
// 2·D floats per segment. In addition, embedding_keys and embedding_runs move 36 bytes per token. In the other
// kernels, each of the `threads` threads of a row reads 4 bytes per token and 4 per slot (8 for a slot with tokens).

#include "vectors.h"

// Returns the slot of a key.
inline uint slot_of(ulong key) {
  return uint(key >> 32);
}

// The share of a thread in rows that `threads` neighboring threads process together. Its vector v begins at column
// first + v·stride. The grid processes `rows` rows at a time, and the thread's rows are row, row + rows, and so on. A
// thread whose row is not below `rows` is idle.
struct RowShare {
  size_t first;
  size_t stride;
  uint row;
  uint rows;
};

template <int VEC>
inline RowShare row_share(uint index, uint grid, uint threads) {
  return RowShare{size_t(index % threads) * VEC, size_t(threads) * VEC, index / threads, grid / threads};
}

// Selects the terms of a sum: term i is row order[i] of a matrix.
struct OrderedRows {
  device const uint* order;

  uint row(uint i) const { return order[i]; }
};

// Selects the terms of a sum: term i is row i of a matrix.
struct ConsecutiveRows {
  uint row(uint i) const { return i; }
};

// Adds the thread's columns of the terms [begin, end) to its sums. Blocks of BLOCK terms are added up separately first.
// In a sum of n terms, each term then passes through at most n/BLOCK + BLOCK roundings instead of n.
template <int VEC, int VECS_PER_THREAD, typename T, typename Rows>
inline void add_rows(
    device const T* values,
    Rows rows,
    uint begin,
    uint end,
    RowShare share,
    size_t width,
    bool is_aligned,
    thread float* sums) {
  constexpr uint BLOCK = 4;
  for (uint block = begin; block < end; block += BLOCK) {
    uint indices[BLOCK];
    for (uint i = 0; i < BLOCK && block + i < end; i++) {
      indices[i] = rows.row(block + i);
    }
    for (int v = 0; v < VECS_PER_THREAD && share.first + v * share.stride < width; v++) {
      float block_sums[VEC] = {};
      for (uint i = 0; i < BLOCK && block + i < end; i++) {
        float row[VEC];
        load_vec<VEC>(values + size_t(indices[i]) * width, share.first + v * share.stride, width, is_aligned, row);
        for (int k = 0; k < VEC; k++) {
          block_sums[k] += row[k];
        }
      }
      for (int k = 0; k < VEC; k++) {
        sums[v * VEC + k] += block_sums[k];
      }
    }
  }
}

template <int VEC, int VECS_PER_THREAD>
inline void clear_sums(RowShare share, size_t width, thread float* sums) {
  for (int v = 0; v < VECS_PER_THREAD && share.first + v * share.stride < width; v++) {
    for (int k = 0; k < VEC; k++) {
      sums[v * VEC + k] = 0;
    }
  }
}

template <int VEC, int VECS_PER_THREAD, typename T>
inline void write_sums(device T* row, RowShare share, size_t width, thread const float* sums) {
  const bool is_aligned = vec_aligned<VEC>(row, width);
  for (int v = 0; v < VECS_PER_THREAD && share.first + v * share.stride < width; v++) {
    store_vec<VEC>(row, share.first + v * share.stride, width, is_aligned, sums + v * VEC);
  }
}

// Copies the vector at `column` of a row bit for bit, up to the end of the row.
template <int VEC, typename T>
inline void copy(device const T* from, device T* to, size_t column, size_t width, bool is_aligned) {
  if (is_aligned) {
    const Vec<T, VEC> pack = reinterpret_cast<device const Vec<T, VEC>*>(from)[column / VEC];
    reinterpret_cast<device Vec<T, VEC>*>(to)[column / VEC] = pack;
  } else if (column + VEC <= width) {
    T values[VEC];
    for (int k = 0; k < VEC; k++) {
      values[k] = from[column + k];
    }
    for (int k = 0; k < VEC; k++) {
      to[column + k] = values[k];
    }
  } else {
    for (int k = 0; k < VEC && column + k < width; k++) {
      to[column + k] = from[column + k];
    }
  }
}

template <typename T, int VEC>
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
  const RowShare share = row_share<VEC>(index, grid, threads);
  const bool is_aligned = vec_aligned<VEC>(weight, width) && vec_aligned<VEC>(y, width);
  for (uint token = share.row; share.row < share.rows && token < tokens; token += share.rows) {
    device T* to = y + size_t(token) * width;
    const uint id = ids[token];
    const bool is_known = id < vocabulary;
    for (size_t column = share.first; column < width; column += share.stride) {
      if (is_known) {
        copy<VEC>(weight + size_t(id) * width, to, column, width, is_aligned);
      } else {
        for (int k = 0; k < VEC && column + k < width; k++) {
          to[column + k] = T(NAN);
        }
      }
    }
  }
}

// keys[n] = slot·2³² + n, where the slot of an id is the id itself, or `vocabulary` if it is out of range.
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

// A counting sort. It counts the tokens of each id in `places`, which the launch initializes with zeros. It then
// replaces each count by the index of the id's first key, and stores the keys in the order of the tokens.
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

// Computes order[i], the token of key i, and [begins[slot], ends[slot]), the indices of a slot's keys. Ids out of range
// have no run. begins of the first run is not written and keeps its initial zero.
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

// partial[s] = Σ dy over the tokens of segment s, if they all have the same slot. Other rows of `partial` are neither
// written nor read.
template <typename T, int VEC, int VECS_PER_THREAD>
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
  const RowShare share = row_share<VEC>(index, grid, threads);
  const bool is_aligned = vec_aligned<VEC>(dy, width);
  for (uint s = share.row; share.row < share.rows && s < segments; s += share.rows) {
    const uint begin = s * segment;
    const uint slot = slot_of(keys[begin]);
    if (slot < slots && slot == slot_of(keys[begin + segment - 1])) {
      float sums[VECS_PER_THREAD * VEC];
      clear_sums<VEC, VECS_PER_THREAD>(share, width, sums);
      add_rows<VEC, VECS_PER_THREAD>(dy, OrderedRows{order}, begin, begin + segment, share, width, is_aligned, sums);
      write_sums<VEC, VECS_PER_THREAD>(partial + size_t(s) * width, share, width, sums);
    }
  }
}

template <typename T, int VEC, int VECS_PER_THREAD>
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
  const RowShare share = row_share<VEC>(index, grid, threads);
  const bool is_aligned = vec_aligned<VEC>(dy, width);
  for (uint slot = share.row; share.row < share.rows && slot < slots; slot += share.rows) {
    float sums[VECS_PER_THREAD * VEC];
    clear_sums<VEC, VECS_PER_THREAD>(share, width, sums);
    const uint end = ends[slot];
    if (end > 0) {
      const uint begin = begins[slot];
      // [from, to) are the whole segments of the run, possibly none. [begin, head) and [tail, end) are the tokens
      // before and after them.
      const uint from = (begin + segment - 1) / segment;
      const uint to = end / segment;
      const uint head = min(from * segment, end);
      const uint tail = max(head, to * segment);
      const bool partial_aligned = vec_aligned<VEC>(partial, width);
      const OrderedRows tokens = OrderedRows{order};
      add_rows<VEC, VECS_PER_THREAD>(dy, tokens, begin, head, share, width, is_aligned, sums);
      add_rows<VEC, VECS_PER_THREAD>(partial, ConsecutiveRows{}, from, to, share, width, partial_aligned, sums);
      add_rows<VEC, VECS_PER_THREAD>(dy, tokens, tail, end, share, width, is_aligned, sums);
    }
    write_sums<VEC, VECS_PER_THREAD>(dweight + size_t(slot) * width, share, width, sums);
  }
}
