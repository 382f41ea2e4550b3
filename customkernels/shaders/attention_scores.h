// The scores of attention: sizes, sequences, visible keys, exponentials and statistics of rows (attention.h).

#include "mask_tiles.h"
#include "soft_cap.h"

// Sizes holds the sizes of a launch. The kernel input size_values has its members in this order, with the members of
// MaskSizes before `batches`.
struct Sizes {
  int query_heads, key_heads;
  int queries, keys;  // lengths of the axes
  int left, right;    // keys that a query sees before and after its own position
  int sequences;      // 0 without packed sequences
  int batches;
};

inline Sizes load_sizes(device const int* sizes) {
  return {sizes[0], sizes[1], sizes[2], sizes[3], sizes[4], sizes[5], sizes[6], sizes[11]};
}

// MaskSizes holds the shape of the mask: 1 for a broadcast axis. Launches without a mask do not read it.
struct MaskSizes {
  int batches, heads, queries, keys;
};

inline MaskSizes load_mask_sizes(device const int* sizes) {
  return {sizes[7], sizes[8], sizes[9], sizes[10]};
}

// Exponential computes the exponentials of scores. If products have fewer bits than a float, exponentials are powers of
// 2, which take one instruction on GPUs, and scores are multiplied by log₂e. Otherwise they are powers of e, because
// rounding scale·log₂e would double the error in float32.
template <typename T>
struct Exponential {
  static constexpr constant bool BASE_2 = sizeof(T) == 2 || MULTIPLIES_TF32;

  // unit returns the factor by which scores are multiplied: log₂e or 1.
  static float unit() { return BASE_2 ? M_LOG2E_F : 1.0f; }
  static float of(float score) { return BASE_2 ? fast::exp2(score) : exp(score); }

  // replace replaces each score of a tile by the power of score − base, times a factor if FACTORS. Each of the lane's
  // rows has a base and a factor.
  template <bool FACTORS, typename SCORES>
  static void replace(thread SCORES& tile, thread const float* base, thread const float* factors) {
    typedef ElementOrder<SCORES> Order;
    for (int a = 0; a < Order::OUTER; a++) {
      for (int b = 0; b < Order::INNER; b++) {
        const int i = Order::row(a, b), j = Order::column(a, b);
        const float power = of(tile.get(i, j) - base[i]);
        tile.set(i, j, FACTORS ? power * factors[i] : power);
      }
    }
  }

  // replace_and_sum also sums the powers of each of the lane's rows.
  template <typename SCORES>
  static void replace_and_sum(thread SCORES& tile, thread const float* base, thread float* sums) {
    replace<false>(tile, base, base);
    row_sum(tile, sums);
  }

#ifdef MLXG_TILE_EXPONENTIALS
  template <bool FACTORS, int ROWS, int COLUMNS>
  static void replace(
      thread Tile<BY_COLUMNS, ROWS, COLUMNS>& tile, thread const float* base, thread const float* factors) {
    mlxg::exponentials<BASE_2, FACTORS, false, COLUMNS>(tile.transpose.elements, base, factors, nullptr);
  }
  template <int ROWS, int COLUMNS>
  static void replace_and_sum(
      thread Tile<BY_COLUMNS, ROWS, COLUMNS>& tile, thread const float* base, thread float* sums) {
    mlxg::exponentials<BASE_2, false, true, COLUMNS>(tile.transpose.elements, base, nullptr, sums);
  }
#endif
};

// Scoring turns a product q·k into a score, multiplied by Exponential's unit.
struct Scoring {
  float scale, unit, cap;

  // scaled returns the score without a cap. For powers of e, fma(product, scale, 0) rounds the score. A compiler could
  // fuse a plain product with the subtraction that follows it, in one kernel and not in another, and the kernels would
  // compute different p.
  float scaled(float product) const { return unit == 1 ? fma(product, scale, 0.0f) : product * (scale * unit); }

  float capped(float product) const { return fma(cap, tanh(product * scale / cap), 0.0f) * unit; }
};

// uncap multiplies gradients of capped scores by the cap's derivative at the products q·k.
template <bool CAPPED, typename SCORES>
inline void uncap(thread SCORES& gradients, thread SCORES& products, Scoring scoring) {
  if (CAPPED) {
    typedef ElementOrder<SCORES> Order;
    for (int a = 0; a < Order::OUTER; a++) {
      for (int b = 0; b < Order::INNER; b++) {
        const int i = Order::row(a, b), j = Order::column(a, b);
        const float slope = tanh_slope(products.get(i, j) * scoring.scale / scoring.cap);
        gradients.set(i, j, gradients.get(i, j) * slope);
      }
    }
  }
}

// load_scoring reads the scale and the soft cap.
template <typename T>
inline Scoring load_scoring(device const float* scalars) {
  return {scalars[0], Exponential<T>::unit(), scalars[1]};
}

// A Sequence is one of the packed sequences: its first row in q and in k, and its lengths.
struct Sequence {
  int query, key;
  int queries, keys;
};

// A Band tells which keys the queries of a sequence see by position: query i sees the keys [i + low, i + high].
struct Band {
  int low, high, queries, keys;

  bool sees(int query, int key) const { return key >= query + low && key <= query + high && key < keys; }

  // sees_all reports whether all queries of [query, query + m) see all keys of [key, key + n).
  bool sees_all(int query, int m, int key, int n) const {
    return key >= query + m - 1 + low && key + n - 1 <= query + high && key + n <= keys;
  }

  // sees_some reports whether some query of [query, query + m) may see a key of [key, key + n). `query` and `key` must
  // be in the sequence.
  bool sees_some(int query, int m, int key, int n) const {
    return key + n - 1 >= query + low && key <= query + m - 1 + high;
  }

  // The keys [first_key(query), end_key(query, m)) contain all keys that the queries [query, query + m) see.
  int first_key(int query) const { return max(query + low, 0); }
  int end_key(int query, int m) const { return min(min(query + m, queries) + high, keys); }

  // The queries [first_query(key), end_query(key, n)) contain all queries that see a key of [key, key + n).
  int first_query(int key) const { return max(key - high, 0); }
  int end_query(int key, int n) const { return min(min(key + n, keys) - low, queries); }
};

// band_of aligns the last query of a sequence with its last key.
inline Band band_of(Sizes sizes, Sequence sequence) {
  const int offset = sequence.keys - sequence.queries;
  return {offset - sizes.left, offset + sizes.right, sequence.queries, sequence.keys};
}

// start_of returns the start of sequence s on an axis of this length. The first sequence starts at 0, the last ends at
// `length`, and all starts are clamped to the axis. So invalid starts cause no access out of bounds, and ascending
// starts cover every row.
inline int start_of(Sizes sizes, device const int* starts, int length, int s) {
  return s == 0 ? 0 : s == sizes.sequences ? length : clamp(starts[s], 0, length);
}

inline Sequence sequence_at(Sizes sizes, device const int* query_starts, device const int* key_starts, int s) {
  const int query = start_of(sizes, query_starts, sizes.queries, s);
  const int key = start_of(sizes, key_starts, sizes.keys, s);
  return {
      query, key, max(start_of(sizes, query_starts, sizes.queries, s + 1) - query, 0),
      max(start_of(sizes, key_starts, sizes.keys, s + 1) - key, 0)};
}

// search_sequence returns the last sequence that starts at row `at` or before. If BLOCKS, `at` is the index of a block
// of `rows` rows, and the result is the last sequence whose first block is block `at` or before. The first block of
// sequence s is start / rows + s, which leaves enough blocks for every sequence.
template <bool BLOCKS>
inline int search_sequence(Sizes sizes, device const int* starts, int length, int rows, int at) {
  int s = 0;
  for (int end = sizes.sequences; end - s > 1;) {
    const int middle = s + (end - s) / 2;
    const int start = start_of(sizes, starts, length, middle);
    if ((BLOCKS ? start / rows + middle : start) <= at) {
      s = middle;
    } else {
      end = middle;
    }
  }
  return s;
}

// find_sequence returns the sequence to which a threadgroup's block of `rows` rows belongs. It sets `first` to the
// position of the block's first row in the sequence. Rows are keys if KEYS, otherwise queries.
template <bool KEYS>
inline Sequence find_sequence(
    Sizes sizes, device const int* query_starts, device const int* key_starts, int block, int rows, thread int& first) {
  if (sizes.sequences == 0) {
    first = block * rows;
    return {0, 0, sizes.queries, sizes.keys};
  }
  device const int* starts = KEYS ? key_starts : query_starts;
  const int length = KEYS ? sizes.keys : sizes.queries;
  const int s = search_sequence<true>(sizes, starts, length, rows, block);
  first = (block - start_of(sizes, starts, length, s) / rows - s) * rows;
  return sequence_at(sizes, query_starts, key_starts, s);
}

// mask_of returns the mask of one head of one batch, from a sequence's first query and key on. If TRANSPOSED, a word of
// Bits holds 32 queries of a key, otherwise 32 keys of a query.
template <bool TRANSPOSED, typename MASK_T>
inline Mask<MASK_T> mask_of(device const MASK_T* values, MaskSizes sizes, Sequence sequence, int batch, int head) {
  const size_t matrix = (sizes.batches > 1 ? size_t(batch) * sizes.heads : 0) + (sizes.heads > 1 ? head : 0);
  if (is_same<MASK_T, Bits>::value) {
    const int rows = TRANSPOSED ? sizes.keys : sizes.queries;
    const uint words = ((TRANSPOSED ? sizes.queries : sizes.keys) + 31) / 32;
    return {values + matrix * rows * words, rows > 1 ? words : 0, words - 1, sequence.query, sequence.key};
  }
  const uint query_stride = sizes.queries > 1 ? sizes.keys : 0, key_stride = sizes.keys > 1;
  return {values + matrix * sizes.queries * sizes.keys, query_stride, key_stride, sequence.query, sequence.key};
}

// add_other_half adds the tile that another simdgroup passes to add_other_half at the same time. `own` and `other` are
// the lane's first elements in the parts of threadgroup memory of the two simdgroups.
template <int LANES, typename SCORES>
inline void add_other_half(thread SCORES& tile, threadgroup Vec<float, 2>* own, threadgroup Vec<float, 2>* other) {
  for (int i = 0; i < SCORES::LANE_ROWS; i++) {
    for (int j = 0; j < SCORES::LANE_COLUMNS; j += 2) {
      own[(i * SCORES::LANE_COLUMNS + j) / 2 * LANES] = Vec<float, 2>{{tile.get(i, j), tile.get(i, j + 1)}};
    }
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (int i = 0; i < SCORES::LANE_ROWS; i++) {
    for (int j = 0; j < SCORES::LANE_COLUMNS; j += 2) {
      const Vec<float, 2> pair = other[(i * SCORES::LANE_COLUMNS + j) / 2 * LANES];
      tile.set(i, j, tile.get(i, j) + pair.values[0]);
      tile.set(i, j + 1, tile.get(i, j + 1) + pair.values[1]);
    }
  }
}

// RowStats holds the statistics of a query's scores for the backward pass. maximum and logsumexp are multiplied by
// Exponential's unit, as scores are. logsumexp is set only if exponentials are powers of 2.
struct RowStats {
  float maximum, inverse_sum, delta, logsumexp;
};
constant constexpr int ROW_STATS_SIZE = 4;

// StatsArrays holds the members of N RowStats as arrays, which a CPU loads as vectors.
template <int N>
struct StatsArrays {
  float maximum[N], inverse_sum[N], delta[N], logsumexp[N];

  RowStats get(int j) const { return {maximum[j], inverse_sum[j], delta[j], logsumexp[j]}; }

  void set(int j, RowStats of_query) {
    maximum[j] = of_query.maximum;
    inverse_sum[j] = of_query.inverse_sum;
    delta[j] = of_query.delta;
    logsumexp[j] = of_query.logsumexp;
  }
};

// StoredStats selects the formula for p, and the elements [FIRST, FIRST + COUNT) of RowStats that p and dz need.
//
// p = exp(s − maximum) · inverse_sum, or, if BY_LOGSUMEXP, exp(s − logsumexp). The second formula is accurate enough
// for powers of 2 if the mask has no numbers. A mask of numbers may make the maximum so large that maximum + log(sum)
// loses the bits of log(sum).
template <typename T, typename MASK_T, bool MASKED>
struct StoredStats {
  static constexpr constant bool BY_LOGSUMEXP = Exponential<T>::BASE_2 && (!MASKED || IsBoolean<MASK_T>::value);
  static constexpr constant int FIRST = BY_LOGSUMEXP ? 2 : 0, COUNT = BY_LOGSUMEXP ? 2 : 3;
};

// row_stats returns the statistics of a query from m and l. l is 0 for a row that sees no key.
template <typename T>
inline RowStats row_stats(float m, float l, float delta) {
  const float sum = l == 0 ? 1.0f : l;
  const float maximum = m * Exponential<T>::unit();
  return {maximum, 1 / sum, delta, Exponential<T>::BASE_2 ? maximum + log2(sum) : 0.0f};
}

// load_row_stats reads the statistics of row r. Rows at or beyond `rows` have zeros.
inline RowStats load_row_stats(device const float* from, int r, int rows) {
  if (r >= rows) {
    return {0, 0, 0, 0};
  }
  const Vec<float, ROW_STATS_SIZE> row = reinterpret_cast<device const Vec<float, ROW_STATS_SIZE>*>(from)[r];
  return {row.values[0], row.values[1], row.values[2], row.values[3]};
}

inline void store(RowStats row, device float* to) {
  const Vec<float, ROW_STATS_SIZE> pack = {{row.maximum, row.inverse_sum, row.delta, row.logsumexp}};
  *reinterpret_cast<device Vec<float, ROW_STATS_SIZE>*>(to) = pack;
}

// load_statistics sets the RowStats of a block's queries from m and l. delta becomes −dlse.
template <typename T, bool HAS_DLSE, typename BLOCK>
inline void load_statistics(thread BLOCK& block, device const float* statistics, device const float* dlse) {
  for (int i = 0; i < BLOCK::Scores::LANE_ROWS; i++) {
    const int r = BLOCK::Scores::row(i, block.lane);
    block.row_stats.set(i, {0, 0, 0, 0});
    if (r < block.rows) {
      const size_t at = block.row + r;
      const float delta = HAS_DLSE ? -dlse[at] : 0;
      block.row_stats.set(i, row_stats<T>(statistics[2 * at], statistics[2 * at + 1], delta));
    }
  }
}

// store_statistics writes the RowStats of a block's queries. One of the lanes that share a row writes.
template <typename BLOCK>
inline void store_statistics(thread BLOCK& block, device float* to) {
  for (int i = 0; i < BLOCK::Scores::LANE_ROWS; i++) {
    const int r = BLOCK::Scores::row(i, block.lane);
    if (r < block.rows && BLOCK::Scores::column(0, block.lane) == 0 && block.part == 0) {
      store(block.row_stats.get(i), to + (block.row + r) * ROW_STATS_SIZE);
    }
  }
}
