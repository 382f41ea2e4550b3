// Attention, forward and backward, without scores in device memory.
//
// For each batch and query head h, with key and value head h / G, G = Hq / Hkv, and the
// rows q_i (i < Lq), k_j and v_j (j < Lkv):
//
//   s_ij = scale · q_i·k_j;  with a soft cap c, c·tanh(s_ij / c);  then + mask_ij
//   p_ij = exp(s_ij − lse_i),  lse_i = log(Σ_j exp(s_ij) + exp(sink_h))
//   o_i  = Σ_j p_ij · v_j
//
// over the keys that i sees: those with i + low ≤ j ≤ i + high where the mask, if it is
// boolean, is true. A row that sees none has o = 0 and no gradient.
//
// With do the cotangent of o and dlse that of lse (Dao et al., "FlashAttention", 2022,
// appendix B.2):
//
//   delta_i = Σ do_i·o_i − dlse_i
//   dz_ij   = p_ij · (do_i·v_j − delta_i)             the gradient of the mask
//   ds_ij   = dz_ij · sech²(s_ij / c)                 s before the cap
//   dq_i = scale · Σ_j ds_ij·k_j,  dk_j = scale · Σ_i ds_ij·q_i,  dv_j = Σ_i p_ij·do_i
//
//   attention_forward   o and, of each row, its largest score m and l = exp(lse − m):
//                       exp(s_ij − m) / l keeps what a rounded lse would lose
//   attention_delta     what the backward pass knows of every row: m, 1 / l and delta, here
//                       as Σ_j p_ij·(do_i·v_j): the products are those that it is taken from
//                       later, so that their errors cancel (but for a pair's last rounding)
//   attention_delta_of_output  the same from o, whose rounding a T of 16 bits does not
//                       notice, but in sums of dz over the keys of a row, which are nearly 0
//   attention_dq        a simdgroup owns M queries and walks over keys
//   attention_dkv       a simdgroup owns M keys and walks over the queries of G heads. It
//                       computes transposes of s and p, so that nothing is transposed
//   attention_mask_bits  the bits of a boolean mask, for simdgroups of 32 lanes
//   attention_dmask     a simdgroup owns M×N elements of the mask, and walks over what
//                       they are broadcast to
//
// Nothing but m, l and delta lies in memory between the kernels: s and p are computed
// anew in each. Storage is T (B for the mask, Bits for booleans with 32 lanes); products are added
// up in float, scores are scaled in float; p and ds are floats unless a device multiplies nothing
// but T (tiles.h). A sum has one owner, who adds in the order of rows, so results are the same bits
// every time.
// Soft caps (CAPPED) and masks (MASKED) are known to the compiler, which has no registers to
// spare for what a launch does without.
//
// PAIRED: two neighbouring simdgroups share M rows, each with half the columns of heads so wide that all
// would not fit its registers: of operands, sums and panels. They put their parts of scores together.
//
// Launch (threads): groups of SIMDGROUPS simdgroups of LANES lanes along x, one for each block
// of M rows a simdgroup, for each head of each batch; attention_dmask in groups of one
// simdgroup. The tiles that no row of a group sees are not fetched, and those that a boolean mask
// hides from a simdgroup not computed, but by pairs; positions are compared only in those that some
// row of a simdgroup does not see in full. Packed sequences lie one after the other along the length; a
// block has rows of one sequence only, so there are up to as many blocks more as there are sequences.
// The last queries come first: where attention is causal they see most, and no long walk is begun at the end.
//
// Device traffic, in elements of T: of a head of attention_forward, Lq·(D + DV) and
// Lkv·(D + DV) for each block of rows; attention_dq the same, and Lq·(D + DV) more;
// attention_dkv Lkv·2·(D + DV), and G·Lq·(D + DV) for each block of keys.

#include "mask_tiles.h"
#include "soft_cap.h"

// What a launch is told, in the order of `sizes`.
struct Sizes {
  int query_heads, key_heads;
  int queries, keys;  // the lengths of the axes
  int left, right;    // keys that a query sees before and after its own position
  int sequences;      // 0 where nothing is packed
  int mask_batches, mask_heads, mask_queries, mask_keys;  // the mask's axes, 1 where it is broadcast, 0 for none
  int batches;
};

inline Sizes sizes_of(device const int* sizes) {
  return {sizes[0], sizes[1], sizes[2], sizes[3], sizes[4],  sizes[5],
          sizes[6], sizes[7], sizes[8], sizes[9], sizes[10], sizes[11]};
}

// The exponentials of scores. Where p is rounded to 16 bits they are powers of 2, one
// instruction of a GPU, and scores are in units that make them so; else of e, because rounding
// scale·log₂e doubles the error of float32.
template <typename T>
struct Power {
  enum { OF_TWO = sizeof(T) == 2 };

  // A natural score of 1.
  static float unit() {
    return OF_TWO ? M_LOG2E_F : 1.0f;
  }
  static float of(float score) {
    return OF_TWO ? fast::exp2(score) : exp(score);
  }
};

// What becomes of a product q·k.
struct Scores {
  float scale, unit;
  float cap;

  // The score of a product. It is rounded where it is not a power of 2's: a compiler may make one
  // operation of a product and the difference that follows, and where it did so in one kernel and not
  // in another they would find different weights.
  float of(float product) const {
    return unit == 1 ? fma(product, scale, 0.0f) : product * (scale * unit);
  }

  float capped(float product) const {
    return fma(cap, tanh(product * scale / cap), 0.0f) * unit;
  }
};

// numbers are the scale and the soft cap.
template <typename T>
inline Scores scores_of(device const float* numbers) {
  return {numbers[0], Power<T>::unit(), numbers[1]};
}

// A sequence: where its rows begin in the packed axes, and how many it has.
struct Sequence {
  int query, key;
  int queries, keys;
};

// Which keys the queries of a sequence see: query i those of [i + low, i + high].
struct Band {
  int low, high, queries, keys;

  bool has(int query, int key) const {
    return key >= query + low && key <= query + high && key < keys;
  }

  // Whether all queries of [query, query + m) see all keys of [key, key + n).
  bool has_all(int query, int m, int key, int n) const {
    return key >= query + m - 1 + low && key + n - 1 <= query + high && key + n <= keys;
  }

  // Whether some may.
  bool has_some(int query, int m, int key, int n) const {
    return key + n - 1 >= query + low && key <= query + m - 1 + high && query < queries && key < keys;
  }

  // The keys [first, end) that queries of [query, query + m) see.
  int first_key(int query) const {
    return max(query + low, 0);
  }
  int end_key(int query, int m) const {
    return min(min(query + m, queries) + high, keys);
  }

  // The queries [first, end) that see keys of [key, key + n).
  int first_query(int key) const {
    return max(key - high, 0);
  }
  int end_query(int key, int n) const {
    return min(min(key + n, keys) - low, queries);
  }
};

inline Band band_of(Sizes sizes, Sequence sequence) {
  // Aligned at the last query and the last key.
  const int offset = sequence.keys - sequence.queries;
  return {offset - sizes.left, offset + sizes.right, sequence.queries, sequence.keys};
}

// Where sequence s starts on an axis of that length. The first starts at 0 and the last ends at the
// length: starts that nobody checked are within the axis, and those that ascend leave no row out.
inline int start_of(Sizes sizes, device const int* starts, int length, int s) {
  return s == 0 ? 0 : s == sizes.sequences ? length : clamp(starts[s], 0, length);
}

inline Sequence sequence_at(Sizes sizes, device const int* query_starts, device const int* key_starts, int s) {
  const int query = start_of(sizes, query_starts, sizes.queries, s);
  const int key = start_of(sizes, key_starts, sizes.keys, s);
  return {query, key, max(start_of(sizes, query_starts, sizes.queries, s + 1) - query, 0),
          max(start_of(sizes, key_starts, sizes.keys, s + 1) - key, 0)};
}

// Finds the sequence that a group's block of rows belongs to, of keys or else of queries, and the
// block's first row there. Sequence s has the blocks from start / rows + s on, which are enough for it.
template <bool KEYS>
inline Sequence find_sequence(
    Sizes sizes,
    device const int* query_starts,
    device const int* key_starts,
    int block,
    int rows,
    thread int& first) {
  if (sizes.sequences == 0) {
    first = block * rows;
    return {0, 0, sizes.queries, sizes.keys};
  }
  device const int* starts = KEYS ? key_starts : query_starts;
  const int length = KEYS ? sizes.keys : sizes.queries;
  int s = 0;
  for (int end = sizes.sequences; end - s > 1;) {
    const int middle = s + (end - s) / 2;
    if (start_of(sizes, starts, length, middle) / rows + middle <= block) {
      s = middle;
    } else {
      end = middle;
    }
  }
  first = (block - start_of(sizes, starts, length, s) / rows - s) * rows;
  return sequence_at(sizes, query_starts, key_starts, s);
}

// The keys [first, end) of the packed axis that a query of it sees.
struct Seen {
  int first, end;
};

inline Seen seen_by(Sizes sizes, device const int* query_starts, device const int* key_starts, int query) {
  Sequence sequence = {0, 0, sizes.queries, sizes.keys};
  if (sizes.sequences > 0) {
    int s = 0;
    for (int end = sizes.sequences; end - s > 1;) {
      const int middle = s + (end - s) / 2;
      if (query_starts[middle] <= query) {
        s = middle;
      } else {
        end = middle;
      }
    }
    sequence = sequence_at(sizes, query_starts, key_starts, s);
  }
  const Band band = band_of(sizes, sequence);
  const int own = query - sequence.query;
  if (own < 0 || own >= sequence.queries) {
    return {0, 0};
  }
  // A row that sees nothing ends where its sequence begins, so later rows end no earlier.
  return {sequence.key + band.first_key(own), sequence.key + max(band.end_key(own, 1), 0)};
}

// The mask of a head of a batch, from a sequence's first query and key on, for tiles of the same
// TRANSPOSED, which say whether bits are of keys or of queries.
template <bool TRANSPOSED, typename B>
inline Mask<B> mask_of(device const B* values, Sizes sizes, Sequence sequence, int batch, int head) {
  const bool of_queries = sizes.mask_queries > 1, of_keys = sizes.mask_keys > 1;
  const size_t matrix = (sizes.mask_batches > 1 ? size_t(batch) * sizes.mask_heads : 0) + (sizes.mask_heads > 1 ? head : 0);
  const bool is_bits = is_same<B, Bits>::value;
  if (TRANSPOSED && is_bits) {
    const uint words = (sizes.mask_queries + 31) / 32;
    return {values + matrix * sizes.mask_keys * words, words - 1, of_keys ? words : 0, sequence.query, sequence.key};
  }
  const uint row = is_bits ? (sizes.mask_keys + 31) / 32 : sizes.mask_keys;
  values += matrix * sizes.mask_queries * row;
  return {values, of_queries ? row : 0, is_bits ? row - 1 : uint(of_keys), sequence.query, sequence.key};
}

// Makes scores, before the mask, of products.
template <bool CAPPED, int LANES, int M, int N>
inline void scale(thread Tile<LANES, M, N>& tile, Scores scores) {
  typedef Tile<LANES, M, N> Scored;
  for (int i = 0; i < Scored::ROWS; i++) {
    for (int j = 0; j < Scored::COLUMNS; j++) {
      tile.set(i, j, CAPPED ? scores.capped(tile.get(i, j)) : scores.of(tile.get(i, j)));
    }
  }
}

// Makes scores of the products of queries, by rows, and keys, by columns; TRANSPOSED: of keys by rows
// and queries by columns. What a query does not see is hidden later.
template <bool TRANSPOSED, bool CAPPED, bool MASKED, typename B, int LANES, int M, int N>
inline void score(
    thread Tile<LANES, M, N>& tile, Scores scores, thread const MaskTile<TRANSPOSED, B, LANES, M, N>& mask) {
  scale<CAPPED>(tile, scores);
  if (MASKED && !IsSeen<B>::value) {
    for (int i = 0; i < Tile<LANES, M, N>::ROWS; i++) {
      for (int j = 0; j < Tile<LANES, M, N>::COLUMNS; j++) {
        tile.set(i, j, tile.get(i, j) + float(mask.get(i, j)) * scores.unit);
      }
    }
  }
}

// Gives a value to the elements of a tile whose query does not see their key.
template <bool TRANSPOSED, bool MASKED, typename B, int LANES, int M, int N>
inline void hide(
    thread Tile<LANES, M, N>& tile,
    float value,
    thread const MaskTile<TRANSPOSED, B, LANES, M, N>& mask,
    Band band,
    int query,
    int key,
    uint lane) {
  typedef Tile<LANES, M, N> Scored;
  if (MASKED && IsSeen<B>::value) {
    for (int i = 0; i < Scored::ROWS; i++) {
      for (int j = 0; j < Scored::COLUMNS; j++) {
        tile.set(i, j, mask.get(i, j) ? tile.get(i, j) : value);
      }
    }
  }
  if (!band.has_all(query, TRANSPOSED ? N : M, key, TRANSPOSED ? M : N)) {
    for (int i = 0; i < Scored::ROWS; i++) {
      const int r = tile.row(i, lane);
      for (int j = 0; j < Scored::COLUMNS; j++) {
        const int c = tile.column(j, lane);
        const bool seen = band.has(query + (TRANSPOSED ? c : r), key + (TRANSPOSED ? r : c));
        tile.set(i, j, seen ? tile.get(i, j) : value);
      }
    }
  }
}

// Multiplies gradients of capped scores, of products q·k, by the cap's derivative.
template <int LANES, int M, int N>
inline void uncap(thread Tile<LANES, M, N>& gradients, thread Tile<LANES, M, N>& products, Scores scores) {
  for (int i = 0; i < Tile<LANES, M, N>::ROWS; i++) {
    for (int j = 0; j < Tile<LANES, M, N>::COLUMNS; j++) {
      gradients.set(i, j, gradients.get(i, j) * tanh_slope(products.get(i, j) * scores.scale / scores.cap));
    }
  }
}

// What the backward pass knows of a row: m, in the units of scores, 1 / l, delta, and, where scores are
// powers of 2's, m + log l.
struct Row {
  float m, share, delta, base;
};
enum { ROW_SIZE = 4 };

// Whether p_i = exp(s_i − m) / l has l in the exponent, as it may where p is rounded to 16 bits; but not
// where a mask of numbers makes m so huge that it would be lost there. Then base and delta are what is read
// of a row, and else what comes before base.
template <typename T, typename B, bool MASKED>
struct Folded {
  enum { VALUE = Power<T>::OF_TWO && (!MASKED || IsSeen<B>::value), FIRST = VALUE ? 2 : 0, COUNT = VALUE ? 2 : 3 };
};

template <typename T, typename B, bool MASKED>
inline float probability(Row row, float score) {
  if (Folded<T, B, MASKED>::VALUE) {
    return Power<T>::of(score - row.base);
  }
  return Power<T>::of(score - row.m) * row.share;
}

// The row of statistics m and l, which is 0 for a row that sees nothing.
template <typename T>
inline Row row_of(float m, float l, float delta) {
  const float sum = l == 0 ? 1.0f : l;
  const float most = m * Power<T>::unit();
  return {most, 1 / sum, delta, Power<T>::OF_TWO ? most + log2(sum) : 0.0f};
}

// Row r of `rows`; beyond the last there is nothing.
inline Row row_of(device const float* from, int r, int rows) {
  if (r >= rows) {
    return {0, 0, 0, 0};
  }
  const Vec<float, ROW_SIZE> row = reinterpret_cast<device const Vec<float, ROW_SIZE>*>(from)[r];
  return {row.values[0], row.values[1], row.values[2], row.values[3]};
}

inline void store(Row row, device float* to) {
  const Vec<float, ROW_SIZE> pack = {{row.m, row.share, row.delta, row.base}};
  *reinterpret_cast<device Vec<float, ROW_SIZE>*>(to) = pack;
}

// Makes whole a tile of scores, or of their gradients, of which each simdgroup of a pair has what its
// columns of the heads make of it. Both get the same sum. Between two calls with the same memory all
// threads of the threadgroup meet once more.
template <bool PAIRED, int LANES, int M, int N>
inline void add_parts(thread Tile<LANES, M, N>& tile, threadgroup Vec<float, 2>* memory, uint simdgroup, uint lane) {
  if (!PAIRED) {
    return;
  }
  typedef Tile<LANES, M, N> Scored;
  threadgroup Vec<float, 2>* const own = memory + simdgroup * (M * N / 2) + lane;
  threadgroup Vec<float, 2>* const other = memory + (simdgroup ^ 1) * (M * N / 2) + lane;
  for (int i = 0; i < Scored::ROWS; i++) {
    for (int j = 0; j < Scored::COLUMNS; j += 2) {
      const Vec<float, 2> pair = {{tile.get(i, j), tile.get(i, j + 1)}};
      own[(i * Scored::COLUMNS + j) / 2 * LANES] = pair;
    }
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (int i = 0; i < Scored::ROWS; i++) {
    for (int j = 0; j < Scored::COLUMNS; j += 2) {
      const Vec<float, 2> more = other[(i * Scored::COLUMNS + j) / 2 * LANES];
      tile.set(i, j, tile.get(i, j) + more.values[0]);
      tile.set(i, j + 1, tile.get(i, j + 1) + more.values[1]);
    }
  }
}

// Packs booleans, both ways. Along x simdgroups for 32 queries and 32 keys, along y the mask's heads, along
// z its batches. Beyond its last a row has the last one's bit, so a row of one is broadcast.
template <int LANES>
[[kernel]] void attention_mask_bits(
    device const bool* mask [[buffer(0)]],
    device const int* size_values [[buffer(1)]],
    device uint* of_queries [[buffer(2)]],  // of each, a bit for a key
    device uint* of_keys [[buffer(3)]],
    uint3 group [[threadgroup_position_in_grid]],
    uint lane [[thread_index_in_simdgroup]]) {
  const Sizes sizes = sizes_of(size_values);
  const uint queries = sizes.mask_queries, keys = sizes.mask_keys;
  const uint query_words = (keys + LANES - 1) / LANES, key_words = (queries + LANES - 1) / LANES;
  const uint query_word = group.x % query_words, key_word = group.x / query_words;
  const uint query = key_word * LANES, key = query_word * LANES;
  const size_t matrix = size_t(group.z) * sizes.mask_heads + group.y;
  device const bool* const column = mask + matrix * queries * keys + min(key + lane, keys - 1);
  uint of_query = 0, of_key = 0;
  for (uint i = 0; i < LANES; i++) {
    const bool is_seen = column[size_t(min(query + i, queries - 1)) * keys];
    const uint bits = uint((simd_vote::vote_t)simd_ballot(is_seen));
    of_query = lane == i ? bits : of_query;
    of_key |= uint(is_seen) << i;
  }
  if (query + lane < queries) {
    of_queries[(matrix * queries + query + lane) * query_words + query_word] = of_query;
  }
  if (key + lane < keys) {
    of_keys[(matrix * keys + key + lane) * key_words + key_word] = of_key;
  }
}

template <typename T, typename B, bool CAPPED, bool MASKED, bool PAIRED, int LANES, int SIMDGROUPS, int M, int N, int D, int DV>
[[kernel]] void attention_forward(
    device const T* q [[buffer(0)]],
    device const T* k [[buffer(1)]],
    device const T* v [[buffer(2)]],
    device const B* mask_values [[buffer(3)]],
    device const float* sinks [[buffer(4)]],
    device const int* query_starts [[buffer(5)]],
    device const int* key_starts [[buffer(6)]],
    device const int* size_values [[buffer(7)]],
    device const float* numbers [[buffer(8)]],
    device T* o [[buffer(9)]],
    device float* statistics [[buffer(10)]],
    uint3 group [[threadgroup_position_in_grid]],
    uint3 groups [[threadgroups_per_grid]],
    uint thread_index [[thread_index_in_threadgroup]],
    uint lane [[thread_index_in_simdgroup]],
    uint simdgroup [[simdgroup_index_in_threadgroup]]) {
  enum { PARTS = PAIRED ? 2 : 1, TILES = PAIRED ? SIMDGROUPS * M * N / 2 : 1 };
  threadgroup T key_memory[PARTS * Panel<LANES, T, N, D / PARTS, D>::SIZE];
  threadgroup T value_memory[PARTS * Panel<LANES, T, N, DV / PARTS, DV>::SIZE];
  threadgroup Vec<float, 2> score_memory[TILES];
  typedef Tile<LANES, M, N> Scored;

  const Sizes sizes = sizes_of(size_values);
  const Scores scores = scores_of<T>(numbers);
  const uint part = simdgroup % PARTS, part_thread = simdgroup / PARTS * LANES + lane;
  q += part * (D / PARTS);
  k += part * (D / PARTS);
  v += part * (DV / PARTS);
  o += part * (DV / PARTS);
  const int rows = M * SIMDGROUPS / PARTS;
  const int head = group.y, batch = group.z;
  int block;
  const Sequence sequence = find_sequence<false>(sizes, query_starts, key_starts, groups.x - 1 - group.x, rows, block);
  if (block >= sequence.queries) {
    return;
  }
  const Band band = band_of(sizes, sequence);
  const Mask<B> mask = mask_of<false>(mask_values, sizes, sequence, batch, head);
  const size_t matrix = size_t(batch) * sizes.query_heads + head;
  const size_t key_matrix = size_t(batch) * sizes.key_heads + head / (sizes.query_heads / sizes.key_heads);
  const int query = block + int(simdgroup / PARTS) * M;
  const size_t row = matrix * sizes.queries + sequence.query + query;
  const size_t key_row = key_matrix * sizes.keys + sequence.key;
  const int own = sequence.queries - query;

  Operand<LANES, T, M, D / PARTS> queries;
  load(queries, q + row * D, D, own, lane);
  Tile<LANES, M, DV / PARTS> sum;
  fill(sum, 0);
  float m[Scored::ROWS], l[Scored::ROWS];
  for (int i = 0; i < Scored::ROWS; i++) {
    m[i] = sinks[head] * scores.unit;
    l[i] = m[i] == -INFINITY ? 0 : 1;
  }

  const int first = band.first_key(block) / N * N, end = band.end_key(block, rows);
  Panel<LANES, T, N, D / PARTS, D> keys;
  Panel<LANES, T, N, DV / PARTS, DV> values;
  keys.begin(key_memory + part * keys.SIZE, k + (key_row + first) * D, end - first, part_thread, LANES * SIMDGROUPS / PARTS);
  values.begin(value_memory + part * values.SIZE, v + (key_row + first) * DV, end - first, part_thread, LANES * SIMDGROUPS / PARTS);
  MaskTile<false, B, LANES, M, N> elements = {};
  if (MASKED) {
    elements.ask(mask, query, first, own, end - first, lane);
  }
  for (int key = first; key < end; key += N) {
    wait(keys, values);
    keys.turn(k + (key_row + key + N) * D, end - key - N, part_thread, LANES * SIMDGROUPS / PARTS);
    values.turn(v + (key_row + key + N) * DV, end - key - N, part_thread, LANES * SIMDGROUPS / PARTS);
    ready(keys, values);
    bool is_seen = band.has_some(query, M, key, N);
    if (MASKED) {
      if (is_seen) {
        elements.take(mask, query, key, own, band.keys - key, lane);
        is_seen = !elements.hides_all();
      }
      elements.ask(mask, query, key + N, own, end - key - N, lane);
    }
    if (!PAIRED && !is_seen) {
      continue;
    }
    Scored s;
    fill(s, 0);
    multiply_add_transposed(s, queries, keys, lane);
    add_parts<PAIRED>(s, score_memory, simdgroup, lane);
    score<false, CAPPED, MASKED>(s, scores, elements);
    hide<false, MASKED>(s, -INFINITY, elements, band, query, key, lane);

    // m is the largest score so far; what was added up before is in units of the old one.
    float most[Scored::ROWS], shrink[Scored::ROWS], sums[Scored::ROWS];
    bool is_old = true;
    row_max(s, most);
    for (int i = 0; i < Scored::ROWS; i++) {
      most[i] = max(m[i], most[i]);
      const float base = most[i] == -INFINITY ? 0.0f : most[i];
      shrink[i] = Power<T>::of(m[i] - base);
      is_old = is_old && shrink[i] == 1;
      m[i] = most[i];
      for (int j = 0; j < Scored::COLUMNS; j++) {
        s.set(i, j, Power<T>::of(s.get(i, j) - base));
      }
    }
    row_sum(s, sums);
    for (int i = 0; i < Scored::ROWS; i++) {
      l[i] = l[i] * shrink[i] + sums[i];
    }
    // After some panels the largest scores are seldom new ones.
    if (!simd_all(is_old)) {
      multiply_rows(sum, shrink);
    }
    multiply_add(sum, s, values, lane);
  }

  float divisors[Scored::ROWS];
  for (int i = 0; i < Scored::ROWS; i++) {
    divisors[i] = l[i] == 0 ? 1.0f : l[i];  // a row that sees nothing has no scores above −∞
  }
  divide_rows(sum, divisors);
  store(sum, o + row * DV, DV, own, lane);
  for (int i = 0; i < Scored::ROWS; i++) {
    const int r = sum.row(i, lane);
    // One of the lanes that share the row.
    if (r < own && sum.column(0, lane) == 0 && part == 0) {
      statistics[2 * (row + r)] = m[i] == -INFINITY ? 0.0f : m[i] / scores.unit;
      statistics[2 * (row + r) + 1] = l[i];
    }
  }
}

template <typename T, typename B, bool CAPPED, bool MASKED, bool PAIRED, int LANES, int SIMDGROUPS, int M, int N, int D, int DV>
[[kernel]] void attention_delta(
    device const T* q [[buffer(0)]],
    device const T* k [[buffer(1)]],
    device const T* v [[buffer(2)]],
    device const B* mask_values [[buffer(3)]],
    device const T* d_o [[buffer(4)]],
    device const float* statistics [[buffer(5)]],
    device const float* dlse [[buffer(6)]],
    device const int* query_starts [[buffer(7)]],
    device const int* key_starts [[buffer(8)]],
    device const int* size_values [[buffer(9)]],
    device const float* numbers [[buffer(10)]],
    device float* row_values [[buffer(11)]],
    uint3 group [[threadgroup_position_in_grid]],
    uint3 groups [[threadgroups_per_grid]],
    uint thread_index [[thread_index_in_threadgroup]],
    uint lane [[thread_index_in_simdgroup]],
    uint simdgroup [[simdgroup_index_in_threadgroup]]) {
  enum { PARTS = PAIRED ? 2 : 1, TILES = PAIRED ? SIMDGROUPS * M * N / 2 : 1 };
  threadgroup T key_memory[PARTS * Panel<LANES, T, N, D / PARTS, D>::SIZE];
  threadgroup T value_memory[PARTS * Panel<LANES, T, N, DV / PARTS, DV>::SIZE];
  threadgroup Vec<float, 2> score_memory[TILES];
  threadgroup Vec<float, 2> gradient_memory[TILES];
  typedef Tile<LANES, M, N> Scored;

  const Sizes sizes = sizes_of(size_values);
  const Scores scores = scores_of<T>(numbers);
  const uint part = simdgroup % PARTS, part_thread = simdgroup / PARTS * LANES + lane;
  q += part * (D / PARTS);
  k += part * (D / PARTS);
  v += part * (DV / PARTS);
  d_o += part * (DV / PARTS);
  const int rows = M * SIMDGROUPS / PARTS;
  const int head = group.y, batch = group.z;
  int block;
  const Sequence sequence = find_sequence<false>(sizes, query_starts, key_starts, groups.x - 1 - group.x, rows, block);
  if (block >= sequence.queries) {
    return;
  }
  const Band band = band_of(sizes, sequence);
  const Mask<B> mask = mask_of<false>(mask_values, sizes, sequence, batch, head);
  const size_t matrix = size_t(batch) * sizes.query_heads + head;
  const size_t key_matrix = size_t(batch) * sizes.key_heads + head / (sizes.query_heads / sizes.key_heads);
  const int query = block + int(simdgroup / PARTS) * M;
  const size_t row = matrix * sizes.queries + sequence.query + query;
  const size_t key_row = key_matrix * sizes.keys + sequence.key;
  const int own = sequence.queries - query;

  Operand<LANES, T, M, D / PARTS> queries;
  Operand<LANES, T, M, DV / PARTS> d_os;
  load(queries, q + row * D, D, own, lane);
  load(d_os, d_o + row * DV, DV, own, lane);
  Row rows_own[Scored::ROWS];
  for (int i = 0; i < Scored::ROWS; i++) {
    const int r = Scored::row(i, lane);
    rows_own[i] = {0, 0, 0, 0};
    if (r < own) {
      rows_own[i] = row_of<T>(statistics[2 * (row + r)], statistics[2 * (row + r) + 1], -dlse[row + r]);
    }
  }

  const int first = band.first_key(block) / N * N, end = band.end_key(block, rows);
  Panel<LANES, T, N, D / PARTS, D> keys;
  Panel<LANES, T, N, DV / PARTS, DV> values;
  keys.begin(key_memory + part * keys.SIZE, k + (key_row + first) * D, end - first, part_thread, LANES * SIMDGROUPS / PARTS);
  values.begin(value_memory + part * values.SIZE, v + (key_row + first) * DV, end - first, part_thread, LANES * SIMDGROUPS / PARTS);
  MaskTile<false, B, LANES, M, N> elements = {};
  if (MASKED) {
    elements.ask(mask, query, first, own, end - first, lane);
  }
  for (int key = first; key < end; key += N) {
    wait(keys, values);
    keys.turn(k + (key_row + key + N) * D, end - key - N, part_thread, LANES * SIMDGROUPS / PARTS);
    values.turn(v + (key_row + key + N) * DV, end - key - N, part_thread, LANES * SIMDGROUPS / PARTS);
    ready(keys, values);
    bool is_seen = band.has_some(query, M, key, N);
    if (MASKED) {
      if (is_seen) {
        elements.take(mask, query, key, own, band.keys - key, lane);
        is_seen = !elements.hides_all();
      }
      elements.ask(mask, query, key + N, own, end - key - N, lane);
    }
    if (!PAIRED && !is_seen) {
      continue;
    }
    Scored s, d_ps;
    fill(s, 0);
    multiply_add_transposed(s, queries, keys, lane);
    add_parts<PAIRED>(s, score_memory, simdgroup, lane);
    score<false, CAPPED, MASKED>(s, scores, elements);
    fill(d_ps, 0);
    multiply_add_transposed(d_ps, d_os, values, lane);
    add_parts<PAIRED>(d_ps, gradient_memory, simdgroup, lane);
    float sums[Scored::ROWS];
    for (int i = 0; i < Scored::ROWS; i++) {
      for (int j = 0; j < Scored::COLUMNS; j++) {
        s.set(i, j, probability<T, B, MASKED>(rows_own[i], s.get(i, j)) * d_ps.get(i, j));
      }
    }
    hide<false, MASKED>(s, 0, elements, band, query, key, lane);
    row_sum(s, sums);
    for (int i = 0; i < Scored::ROWS; i++) {
      rows_own[i].delta += sums[i];
    }
  }

  for (int i = 0; i < Scored::ROWS; i++) {
    const int r = Scored::row(i, lane);
    if (r < own && Scored::column(0, lane) == 0 && part == 0) {
      store(rows_own[i], row_values + (row + r) * ROW_SIZE);
    }
  }
}

template <typename T, int LANES, int M, int DV>
[[kernel]] void attention_delta_of_output(
    device const T* o [[buffer(0)]],
    device const T* d_o [[buffer(1)]],
    device const float* statistics [[buffer(2)]],
    device const float* dlse [[buffer(3)]],
    constant uint& rows [[buffer(4)]],
    device float* row_values [[buffer(5)]],
    uint group [[threadgroup_position_in_grid]],
    uint thread_index [[thread_index_in_threadgroup]],
    uint lane [[thread_index_in_simdgroup]]) {
  threadgroup T output_memory[Panel<LANES, T, M, DV>::SIZE];
  const size_t row = size_t(group) * M;
  const int own = min(rows - row, size_t(M));

  Operand<LANES, T, M, DV> d_os;
  load(d_os, d_o + row * DV, DV, own, lane);
  Panel<LANES, T, M, DV> outputs;
  outputs.begin(output_memory, o + row * DV, own, thread_index, LANES);
  wait(outputs);
  outputs.turn(o, 0, thread_index, LANES);
  ready(outputs);
  // All of do·o, of which the diagonal is asked for: from the products that do·v is made of
  // later. Where o is one row of v, delta is the same number, but for a pair's rounding.
  Tile<LANES, M, M> products;
  fill(products, 0);
  multiply_add_transposed(products, d_os, outputs, lane);
  for (int i = 0; i < Tile<LANES, M, M>::ROWS; i++) {
    for (int j = 0; j < Tile<LANES, M, M>::COLUMNS; j++) {
      const int r = products.row(i, lane);
      if (r == products.column(j, lane) && r < own) {
        const size_t at = row + r;
        store(row_of<T>(statistics[2 * at], statistics[2 * at + 1], products.get(i, j) - dlse[at]), row_values + at * ROW_SIZE);
      }
    }
  }
}

template <typename T, typename B, bool CAPPED, bool MASKED, bool PAIRED, int LANES, int SIMDGROUPS, int M, int N, int D, int DV>
[[kernel]] void attention_dq(
    device const T* q [[buffer(0)]],
    device const T* k [[buffer(1)]],
    device const T* v [[buffer(2)]],
    device const B* mask_values [[buffer(3)]],
    device const T* d_o [[buffer(4)]],
    device const float* row_values [[buffer(5)]],
    device const int* query_starts [[buffer(6)]],
    device const int* key_starts [[buffer(7)]],
    device const int* size_values [[buffer(8)]],
    device const float* numbers [[buffer(9)]],
    device T* dq [[buffer(10)]],
    uint3 group [[threadgroup_position_in_grid]],
    uint3 groups [[threadgroups_per_grid]],
    uint thread_index [[thread_index_in_threadgroup]],
    uint lane [[thread_index_in_simdgroup]],
    uint simdgroup [[simdgroup_index_in_threadgroup]]) {
  enum { PARTS = PAIRED ? 2 : 1, TILES = PAIRED ? SIMDGROUPS * M * N / 2 : 1 };
  threadgroup T key_memory[PARTS * Panel<LANES, T, N, D / PARTS, D>::SIZE];
  threadgroup T value_memory[PARTS * Panel<LANES, T, N, DV / PARTS, DV>::SIZE];
  threadgroup Vec<float, 2> score_memory[TILES];
  threadgroup Vec<float, 2> gradient_memory[TILES];
  typedef Tile<LANES, M, N> Scored;

  const Sizes sizes = sizes_of(size_values);
  const Scores scores = scores_of<T>(numbers);
  const uint part = simdgroup % PARTS, part_thread = simdgroup / PARTS * LANES + lane;
  q += part * (D / PARTS);
  k += part * (D / PARTS);
  v += part * (DV / PARTS);
  d_o += part * (DV / PARTS);
  dq += part * (D / PARTS);
  const int rows = M * SIMDGROUPS / PARTS;
  const int head = group.y, batch = group.z;
  int block;
  const Sequence sequence = find_sequence<false>(sizes, query_starts, key_starts, groups.x - 1 - group.x, rows, block);
  if (block >= sequence.queries) {
    return;
  }
  const Band band = band_of(sizes, sequence);
  const Mask<B> mask = mask_of<false>(mask_values, sizes, sequence, batch, head);
  const size_t matrix = size_t(batch) * sizes.query_heads + head;
  const size_t key_matrix = size_t(batch) * sizes.key_heads + head / (sizes.query_heads / sizes.key_heads);
  const int query = block + int(simdgroup / PARTS) * M;
  const size_t row = matrix * sizes.queries + sequence.query + query;
  const size_t key_row = key_matrix * sizes.keys + sequence.key;
  const int own = sequence.queries - query;

  Operand<LANES, T, M, D / PARTS> queries;
  Operand<LANES, T, M, DV / PARTS> d_os;
  Tile<LANES, M, D / PARTS> sum;
  load(queries, q + row * D, D, own, lane);
  load(d_os, d_o + row * DV, DV, own, lane);
  fill(sum, 0);
  Row rows_own[Scored::ROWS];
  for (int i = 0; i < Scored::ROWS; i++) {
    rows_own[i] = row_of(row_values + row * ROW_SIZE, Scored::row(i, lane), own);
  }

  const int first = band.first_key(block) / N * N, end = band.end_key(block, rows);
  Panel<LANES, T, N, D / PARTS, D> keys;
  Panel<LANES, T, N, DV / PARTS, DV> values;
  keys.begin(key_memory + part * keys.SIZE, k + (key_row + first) * D, end - first, part_thread, LANES * SIMDGROUPS / PARTS);
  values.begin(value_memory + part * values.SIZE, v + (key_row + first) * DV, end - first, part_thread, LANES * SIMDGROUPS / PARTS);
  MaskTile<false, B, LANES, M, N> elements = {};
  if (MASKED) {
    elements.ask(mask, query, first, own, end - first, lane);
  }
  for (int key = first; key < end; key += N) {
    wait(keys, values);
    keys.turn(k + (key_row + key + N) * D, end - key - N, part_thread, LANES * SIMDGROUPS / PARTS);
    values.turn(v + (key_row + key + N) * DV, end - key - N, part_thread, LANES * SIMDGROUPS / PARTS);
    ready(keys, values);
    bool is_seen = band.has_some(query, M, key, N);
    if (MASKED) {
      if (is_seen) {
        elements.take(mask, query, key, own, band.keys - key, lane);
        is_seen = !elements.hides_all();
      }
      elements.ask(mask, query, key + N, own, end - key - N, lane);
    }
    if (!PAIRED && !is_seen) {
      continue;
    }
    Scored s, products, ds;
    fill(s, 0);
    multiply_add_transposed(s, queries, keys, lane);
    add_parts<PAIRED>(s, score_memory, simdgroup, lane);
    if (CAPPED) {
      products = s;
    }
    score<false, CAPPED, MASKED>(s, scores, elements);
    fill(ds, 0);
    multiply_add_transposed(ds, d_os, values, lane);
    add_parts<PAIRED>(ds, gradient_memory, simdgroup, lane);
    for (int i = 0; i < Scored::ROWS; i++) {
      for (int j = 0; j < Scored::COLUMNS; j++) {
        ds.set(i, j, probability<T, B, MASKED>(rows_own[i], s.get(i, j)) * (ds.get(i, j) - rows_own[i].delta));
      }
    }
    hide<false, MASKED>(ds, 0, elements, band, query, key, lane);
    if (CAPPED) {
      uncap(ds, products, scores);
    }
    multiply_add(sum, ds, keys, lane);
  }

  multiply(sum, scores.scale);
  store(sum, dq + row * D, D, own, lane);
}

template <typename T, typename B, bool CAPPED, bool MASKED, bool PAIRED, int LANES, int SIMDGROUPS, int M, int N, int D, int DV>
[[kernel]] void attention_dkv(
    device const T* q [[buffer(0)]],
    device const T* k [[buffer(1)]],
    device const T* v [[buffer(2)]],
    device const B* mask_values [[buffer(3)]],
    device const T* d_o [[buffer(4)]],
    device const float* row_values [[buffer(5)]],
    device const int* query_starts [[buffer(6)]],
    device const int* key_starts [[buffer(7)]],
    device const int* size_values [[buffer(8)]],
    device const float* numbers [[buffer(9)]],
    device T* dk [[buffer(10)]],
    device T* dv [[buffer(11)]],
    uint3 group [[threadgroup_position_in_grid]],
    uint thread_index [[thread_index_in_threadgroup]],
    uint lane [[thread_index_in_simdgroup]],
    uint simdgroup [[simdgroup_index_in_threadgroup]]) {
  enum { PARTS = PAIRED ? 2 : 1, TILES = PAIRED ? SIMDGROUPS * M * N / 2 : 1 };
  typedef Folded<T, B, MASKED> Read;
  threadgroup T query_memory[PARTS * Panel<LANES, T, N, D / PARTS, D>::SIZE];
  threadgroup T d_o_memory[PARTS * Panel<LANES, T, N, DV / PARTS, DV>::SIZE];
  threadgroup float row_memory[Panel<LANES, float, N, Read::COUNT, ROW_SIZE>::SIZE];
  threadgroup Vec<float, 2> score_memory[TILES];
  threadgroup Vec<float, 2> gradient_memory[TILES];
  typedef Tile<LANES, M, N> Scored;

  const Sizes sizes = sizes_of(size_values);
  const Scores scores = scores_of<T>(numbers);
  const uint part = simdgroup % PARTS, part_thread = simdgroup / PARTS * LANES + lane;
  q += part * (D / PARTS);
  k += part * (D / PARTS);
  v += part * (DV / PARTS);
  d_o += part * (DV / PARTS);
  dk += part * (D / PARTS);
  dv += part * (DV / PARTS);
  const int rows = M * SIMDGROUPS / PARTS;
  const int key_head = group.y, batch = group.z;
  const int heads = sizes.query_heads / sizes.key_heads;
  int block;
  const Sequence sequence = find_sequence<true>(sizes, query_starts, key_starts, group.x, rows, block);
  if (block >= sequence.keys) {
    return;
  }
  const Band band = band_of(sizes, sequence);
  const size_t key_matrix = size_t(batch) * sizes.key_heads + key_head;
  const int key = block + int(simdgroup / PARTS) * M;
  const size_t row = key_matrix * sizes.keys + sequence.key + key;
  const int own = sequence.keys - key;

  Operand<LANES, T, M, D / PARTS> keys;
  Operand<LANES, T, M, DV / PARTS> values;
  Tile<LANES, M, D / PARTS> dk_sum;
  Tile<LANES, M, DV / PARTS> dv_sum;
  load(keys, k + row * D, D, own, lane);
  load(values, v + row * DV, DV, own, lane);
  fill(dk_sum, 0);
  fill(dv_sum, 0);

  const int first = band.first_query(block) / N * N, end = band.end_query(block, rows);
  const int end_head = (key_head + 1) * heads;
  size_t query_row = (size_t(batch) * sizes.query_heads + key_head * heads) * sizes.queries + sequence.query;
  Panel<LANES, T, N, D / PARTS, D> queries;
  Panel<LANES, T, N, DV / PARTS, DV> d_os;
  Panel<LANES, float, N, Read::COUNT, ROW_SIZE> query_rows;
  queries.begin(query_memory + part * queries.SIZE, q + (query_row + first) * D, end - first, part_thread, LANES * SIMDGROUPS / PARTS);
  d_os.begin(d_o_memory + part * d_os.SIZE, d_o + (query_row + first) * DV, end - first, part_thread, LANES * SIMDGROUPS / PARTS);
  query_rows.begin(row_memory, row_values + (query_row + first) * ROW_SIZE + Read::FIRST, end - first, thread_index, LANES * SIMDGROUPS);
  MaskTile<true, B, LANES, M, N> elements = {};
  if (MASKED) {
    elements.ask(mask_of<true>(mask_values, sizes, sequence, batch, key_head * heads), first, key, end - first, own, lane);
  }
  for (int head = key_head * heads; head < end_head; head++, query_row += sizes.queries) {
    const Mask<B> mask = mask_of<true>(mask_values, sizes, sequence, batch, head);
    for (int query = first; query < end; query += N) {
      // The next turn is of this head, or the first of the next.
      size_t next = query_row + query + N;
      int next_rows = end - query - N;
      if (next_rows <= 0) {
        next = query_row + sizes.queries + first;
        next_rows = head + 1 < end_head ? end - first : 0;
      }
      wait(queries, d_os);
      queries.turn(q + next * D, next_rows, part_thread, LANES * SIMDGROUPS / PARTS);
      d_os.turn(d_o + next * DV, next_rows, part_thread, LANES * SIMDGROUPS / PARTS);
      query_rows.turn(row_values + next * ROW_SIZE + Read::FIRST, next_rows, thread_index, LANES * SIMDGROUPS);
      ready(queries, d_os);
      bool is_seen = band.has_some(query, N, key, M);
      if (MASKED) {
        if (is_seen) {
          elements.take(mask, query, key, band.queries - query, own, lane);
          is_seen = !elements.hides_all();
        }
        const bool is_last = query + N >= end;
        elements.ask(
            mask_of<true>(mask_values, sizes, sequence, batch, is_last ? head + 1 : head), is_last ? first : query + N, key,
            next_rows, own, lane);
      }
      if (!PAIRED && !is_seen) {
        continue;
      }
      Scored s, products, ds;
      fill(s, 0);
      multiply_add_transposed(s, keys, queries, lane);
      add_parts<PAIRED>(s, score_memory, simdgroup, lane);
      if (CAPPED) {
        products = s;
      }
      score<true, CAPPED, MASKED>(s, scores, elements);
      float deltas[Scored::COLUMNS];
      for (int j = 0; j < Scored::COLUMNS; j++) {
        float row[ROW_SIZE] = {};
        query_rows.get_row(s.column(j, lane), row + Read::FIRST);
        const Row of_query = {row[0], row[1], row[2], row[3]};
        deltas[j] = of_query.delta;
        for (int i = 0; i < Scored::ROWS; i++) {
          s.set(i, j, probability<T, B, MASKED>(of_query, s.get(i, j)));
        }
      }
      hide<true, MASKED>(s, 0, elements, band, query, key, lane);
      multiply_add(dv_sum, s, d_os, lane);
      fill(ds, 0);
      multiply_add_transposed(ds, values, d_os, lane);
      add_parts<PAIRED>(ds, gradient_memory, simdgroup, lane);
      for (int j = 0; j < Scored::COLUMNS; j++) {
        for (int i = 0; i < Scored::ROWS; i++) {
          ds.set(i, j, s.get(i, j) * (ds.get(i, j) - deltas[j]));
        }
      }
      if (CAPPED) {
        uncap(ds, products, scores);
      }
      multiply_add(dk_sum, ds, queries, lane);
    }
  }

  multiply(dk_sum, scores.scale);
  store(dk_sum, dk + row * D, D, own, lane);
  store(dv_sum, dv + row * DV, DV, own, lane);
}

// Along x blocks of the mask's keys, along y of its queries, along z its matrices.
template <typename T, typename B, bool CAPPED, bool MASKED, bool PAIRED, int LANES, int SIMDGROUPS, int M, int N, int D, int DV>
[[kernel]] void attention_dmask(
    device const T* q [[buffer(0)]],
    device const T* k [[buffer(1)]],
    device const T* v [[buffer(2)]],
    device const B* mask_values [[buffer(3)]],
    device const T* d_o [[buffer(4)]],
    device const float* row_values [[buffer(5)]],
    device const int* query_starts [[buffer(6)]],
    device const int* key_starts [[buffer(7)]],
    device const int* size_values [[buffer(8)]],
    device const float* numbers [[buffer(9)]],
    device B* dmask [[buffer(10)]],
    uint3 group [[threadgroup_position_in_grid]],
    uint thread_index [[thread_index_in_threadgroup]],
    uint lane [[thread_index_in_simdgroup]]) {
  threadgroup T key_memory[Panel<LANES, T, N, D>::SIZE];
  threadgroup T value_memory[Panel<LANES, T, N, DV>::SIZE];
  typedef Tile<LANES, M, N> Scored;

  const Sizes sizes = sizes_of(size_values);
  const Scores scores = scores_of<T>(numbers);
  const bool for_queries = sizes.mask_queries > 1;
  const int mask_batch = group.z / sizes.mask_heads, mask_head = group.z % sizes.mask_heads;
  // What this group's elements are broadcast to.
  const int first_batch = sizes.mask_batches > 1 ? mask_batch : 0;
  const int end_batch = sizes.mask_batches > 1 ? mask_batch + 1 : sizes.batches;
  const int first_head = sizes.mask_heads > 1 ? mask_head : 0;
  const int end_head = sizes.mask_heads > 1 ? mask_head + 1 : sizes.query_heads;
  const int first_query = for_queries ? group.y * M : 0;
  const int end_query = for_queries ? min(first_query + M, sizes.queries) : sizes.queries;
  const int key = group.x * N;

  Scored sum;
  fill(sum, 0);
  for (int batch = first_batch; batch < end_batch; batch++) {
    for (int head = first_head; head < end_head; head++) {
      const Mask<B> mask = mask_of<false>(mask_values, sizes, {0, 0, 0, 0}, batch, head);
      const size_t query_row = (size_t(batch) * sizes.query_heads + head) * sizes.queries;
      const size_t key_matrix = size_t(batch) * sizes.key_heads + head / (sizes.query_heads / sizes.key_heads);
      for (int query = first_query; query < end_query; query += M) {
        const size_t row = query_row + query;
        const int own = sizes.queries - query;
        Operand<LANES, T, M, D> queries;
        Operand<LANES, T, M, DV> d_os;
        load(queries, q + row * D, D, own, lane);
        load(d_os, d_o + row * DV, DV, own, lane);
        Row rows_own[Scored::ROWS];
        Seen seen[Scored::ROWS];
        for (int i = 0; i < Scored::ROWS; i++) {
          const int r = sum.row(i, lane);
          rows_own[i] = row_of(row_values + row * ROW_SIZE, r, own);
          seen[i] = seen_by(sizes, query_starts, key_starts, query + r);  // nothing beyond the last
        }
        // What a later row sees begins and ends no earlier.
        const int first = seen_by(sizes, query_starts, key_starts, query).first;
        const int end = seen_by(sizes, query_starts, key_starts, query + min(own, M) - 1).end;
        if (key >= end || key + N <= first) {
          continue;
        }
        const size_t key_row = key_matrix * sizes.keys + key;
        Panel<LANES, T, N, D> keys;
        Panel<LANES, T, N, DV> values;
        wait(keys, values);
        keys.begin(key_memory, k + key_row * D, sizes.keys - key, thread_index, LANES * SIMDGROUPS);
        values.begin(value_memory, v + key_row * DV, sizes.keys - key, thread_index, LANES * SIMDGROUPS);
        wait(keys, values);
        keys.turn(k, 0, thread_index, LANES * SIMDGROUPS);
        values.turn(v, 0, thread_index, LANES * SIMDGROUPS);
        ready(keys, values);
        Scored s, d_ps;
        fill(s, 0);
        multiply_add_transposed(s, queries, keys, lane);
        scale<CAPPED>(s, scores);
        fill(d_ps, 0);
        multiply_add_transposed(d_ps, d_os, values, lane);
        for (int i = 0; i < Scored::ROWS; i++) {
          for (int j = 0; j < Scored::COLUMNS; j++) {
            const int k = key + sum.column(j, lane);
            if (k >= seen[i].first && k < seen[i].end) {
              const uint q = query + sum.row(i, lane);
              const float value = s.get(i, j) + float(*mask.at(q, k)) * scores.unit;
              sum.set(i, j, sum.get(i, j) + probability<T, B, MASKED>(rows_own[i], value) * (d_ps.get(i, j) - rows_own[i].delta));
            }
          }
        }
      }
    }
  }

  device B* const out = dmask + size_t(group.z) * sizes.mask_queries * sizes.keys;
  if (for_queries) {
    for (int i = 0; i < Scored::ROWS; i++) {
      const int query = first_query + sum.row(i, lane);
      for (int j = 0; j < Scored::COLUMNS; j++) {
        const int column = key + sum.column(j, lane);
        if (query < end_query && column < sizes.keys) {
          out[size_t(query) * sizes.keys + column] = B(sum.get(i, j));
        }
      }
    }
  } else {
    float sums[Scored::COLUMNS];
    column_sum(sum, sums);
    for (int j = 0; j < Scored::COLUMNS; j++) {
      const int column = key + sum.column(j, lane);
      if (column < sizes.keys && sum.row(0, lane) == 0) {
        out[column] = B(sums[j]);
      }
    }
  }
}
