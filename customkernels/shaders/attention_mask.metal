// Masks of attention: the bits of a boolean mask and the gradient of a mask of numbers. attention.h has the formulas.
// Reference: compare/oracle/attention.go, Attention.VJP.
//
//   kernel                threadgroups of one simdgroup, along x, y and z
//   attention_mask_bits   tiles of LANES queries and LANES keys; heads of the mask; batches of the mask
//   attention_dmask       blocks of BLOCK_N keys; blocks of BLOCK_M queries, 1 if the mask is broadcast along queries;
//                         matrices of the mask
//
// attention_dmask has the template parameters of attention.h, without PAIRED. SIMDGROUPS must be 1. A simdgroup owns
// BLOCK_M × BLOCK_N elements of the mask and iterates over the rows, heads and batches that they are broadcast to.

#include "attention.h"

// attention_mask_bits packs a boolean mask into bits twice: in rows of keys and, for attention_dkv, in rows of queries.
// Bits beyond the end of a row repeat the row's last element, so a row of one element is broadcast.
template <int LANES>
[[kernel]] void attention_mask_bits(
    device const bool* mask [[buffer(0)]],
    device const int* size_values [[buffer(1)]],
    device uint* query_bits [[buffer(2)]],  // for each query a bit for every key
    device uint* key_bits [[buffer(3)]],    // for each key a bit for every query
    uint3 group [[threadgroup_position_in_grid]],
    uint lane [[thread_index_in_simdgroup]]) {
  const MaskSizes sizes = load_mask_sizes(size_values);
  const uint queries = sizes.queries, keys = sizes.keys;
  const uint query_words = (keys + LANES - 1) / LANES, key_words = (queries + LANES - 1) / LANES;  // per row
  const uint query_word = group.x % query_words, key_word = group.x / query_words;
  const uint query = key_word * LANES, key = query_word * LANES;
  const size_t matrix = size_t(group.z) * sizes.heads + group.y;
  device const bool* const column = mask + matrix * queries * keys + min(key + lane, keys - 1);
  uint of_query = 0, of_key = 0;
  for (uint i = 0; i < LANES; i++) {
    const bool is_seen = column[size_t(min(query + i, queries - 1)) * keys];
    const uint bits = uint((simd_vote::vote_t)simd_ballot(is_seen));
    of_query = lane == i ? bits : of_query;
    of_key |= uint(is_seen) << i;
  }
  if (query + lane < queries) {
    query_bits[(matrix * queries + query + lane) * query_words + query_word] = of_query;
  }
  if (key + lane < keys) {
    key_bits[(matrix * keys + key + lane) * key_words + key_word] = of_key;
  }
}

// A KeyRange holds the keys [first, end) of the packed axis that a query sees by position.
struct KeyRange {
  int first, end;
};

// visible_keys returns the keys that a query of the packed axis sees. If a query of a sequence sees no key, its range
// is empty and does not end before the sequence's first key, so the ends of successive queries never decrease.
inline KeyRange visible_keys(Sizes sizes, device const int* query_starts, device const int* key_starts, int query) {
  Sequence sequence = {0, 0, sizes.queries, sizes.keys};
  if (sizes.sequences > 0) {
    const int s = search_sequence<false>(sizes, query_starts, sizes.queries, 1, query);
    sequence = sequence_at(sizes, query_starts, key_starts, s);
  }
  const Band band = band_of(sizes, sequence);
  const int own = query - sequence.query;
  if (own < 0 || own >= sequence.queries) {
    return {0, 0};
  }
  return {sequence.key + band.first_key(own), sequence.key + max(band.end_key(own, 1), 0)};
}

// some_see reports whether one of `queries` queries from `query` on may see one of `keys` keys from `key` on. The keys
// of a later query begin and end no earlier, so the first and the last query bound them.
inline bool some_see(
    Sizes sizes,
    device const int* query_starts,
    device const int* key_starts,
    int query,
    int queries,
    int key,
    int keys) {
  const int last_query = query + min(queries, sizes.queries - query) - 1;
  return key < visible_keys(sizes, query_starts, key_starts, last_query).end &&
         key + keys > visible_keys(sizes, query_starts, key_starts, query).first;
}

// add_mask_gradient adds dz of the tile at `query` and `key` to sum. d_ps holds do·v, and row_stats points to the
// RowStats of all queries.
template <typename BLOCK, typename SCORES>
inline void add_mask_gradient(
    thread SCORES& sum,
    thread SCORES& scores,
    thread SCORES& d_ps,
    thread const BLOCK& block,
    device const float* row_stats,
    device const int* query_starts,
    device const int* key_starts,
    int query,
    int key) {
  for (int i = 0; i < SCORES::LANE_ROWS; i++) {
    const int r = SCORES::row(i, block.lane);
    const RowStats stats = load_row_stats(row_stats + block.row * ROW_STATS_SIZE, r, block.rows);
    const KeyRange visible = visible_keys(block.sizes, query_starts, key_starts, query + r);
    for (int j = 0; j < SCORES::LANE_COLUMNS; j++) {
      const int column = key + SCORES::column(j, block.lane);
      if (column >= visible.first && column < visible.end) {
        const float p = BLOCK::probability(stats, scores.get(i, j));
        sum.set(i, j, sum.get(i, j) + p * (d_ps.get(i, j) - stats.delta));
      }
    }
  }
}

// load_panels loads `count` rows of k and v in place of the block's walk and advance, for a threadgroup of one
// simdgroup.
template <typename T, typename BLOCK>
inline void load_panels(
    thread BLOCK& block,
    device const T* k,
    device const T* v,
    int count,
    threadgroup T* key_memory,
    threadgroup T* value_memory) {
  acquire(block.heads, block.values);
  block.heads.init(key_memory, k, count, block.lane, BLOCK::PANEL_THREADS);
  block.values.init(value_memory, v, count, block.lane, BLOCK::PANEL_THREADS);
  acquire(block.heads, block.values);
  block.heads.advance(k, 0, block.lane, BLOCK::PANEL_THREADS);
  block.values.advance(v, 0, block.lane, BLOCK::PANEL_THREADS);
  commit(block.heads, block.values);
}

template <
    typename T,
    typename MASK_T,
    bool CAPPED,
    bool MASKED,
    int LANES,
    int SIMDGROUPS,
    int BLOCK_M,
    int BLOCK_N,
    int HEAD_DIM,
    int VALUE_DIM>
[[kernel]] void attention_dmask(
    device const T* q [[buffer(0)]],
    device const T* k [[buffer(1)]],
    device const T* v [[buffer(2)]],
    device const MASK_T* mask [[buffer(3)]],
    device const T* d_o [[buffer(4)]],
    device const float* row_stats_in [[buffer(5)]],
    device const int* query_starts [[buffer(6)]],
    device const int* key_starts [[buffer(7)]],
    device const int* size_values [[buffer(8)]],
    device const float* scalars [[buffer(9)]],
    device MASK_T* dmask [[buffer(10)]],
    uint3 group [[threadgroup_position_in_grid]],
    uint lane [[thread_index_in_simdgroup]]) {
  typedef AttentionBlock<
      false, T, MASK_T, CAPPED, MASKED, false, LANES, SIMDGROUPS, BLOCK_M, BLOCK_N, HEAD_DIM, VALUE_DIM>
      Block;
  typedef typename Block::Scores Scores;
  threadgroup T key_memory[Block::HEAD_MEMORY];
  threadgroup T value_memory[Block::VALUE_MEMORY];
  const Sizes sizes = load_sizes(size_values);
  const MaskSizes mask_sizes = load_mask_sizes(size_values);
  Block block = {};
  block.sizes = sizes;
  block.mask_sizes = mask_sizes;
  block.masks = mask;
  block.scoring = load_scoring<T>(scalars);
  block.lane = lane;
  // The batches, heads and queries that the threadgroup's elements are broadcast to.
  const bool has_queries = mask_sizes.queries > 1;
  const int mask_batch = group.z / mask_sizes.heads, mask_head = group.z % mask_sizes.heads;
  const int first_batch = mask_sizes.batches > 1 ? mask_batch : 0;
  const int end_batch = mask_sizes.batches > 1 ? mask_batch + 1 : sizes.batches;
  const int first_head = mask_sizes.heads > 1 ? mask_head : 0;
  const int end_head = mask_sizes.heads > 1 ? mask_head + 1 : sizes.query_heads;
  const int first_query = has_queries ? group.y * BLOCK_M : 0;
  const int end_query = has_queries ? min(first_query + BLOCK_M, sizes.queries) : sizes.queries;
  const int key = group.x * BLOCK_N, keys = sizes.keys - key;

  Scores sum;
  fill(sum, 0);
  for (block.batch = first_batch; block.batch < end_batch; block.batch++) {
    for (int head = first_head; head < end_head; head++) {
      const Mask<MASK_T> head_mask = block.mask_at(head);
      const size_t key_row = block.first_row(true, head / (sizes.query_heads / sizes.key_heads)) + key;
      for (int query = first_query; query < end_query; query += BLOCK_M) {
        if (!some_see(sizes, query_starts, key_starts, query, BLOCK_M, key, BLOCK_N)) {
          continue;
        }
        block.rows = sizes.queries - query;
        block.row = block.first_row(false, head) + query;
        typename Block::HeadOperand queries;
        typename Block::WideValues d_os;
        queries.load(q + block.head_offset(block.row), HEAD_DIM, block.rows, block.lane);
        d_os.load(nullptr, d_o + block.value_offset(block.row), block.rows, block.lane);
        block.mask_tile.load(head_mask, query, key, block.rows, keys, lane);
        load_panels(block, k + key_row * HEAD_DIM, v + key_row * VALUE_DIM, keys, key_memory, value_memory);
        Scores s, d_ps;
        multiply_transposed(s, queries, block.heads, lane);
        block.score(s);
        multiply_transposed(d_ps, d_os, block.values, lane);
        add_mask_gradient(sum, s, d_ps, block, row_stats_in, query_starts, key_starts, query, key);
      }
    }
  }

  device MASK_T* const to = dmask + size_t(group.z) * mask_sizes.queries * sizes.keys;
  if (has_queries) {
    for (int i = 0; i < Scores::LANE_ROWS; i++) {
      const int query = first_query + sum.row(i, lane);
      for (int j = 0; j < Scores::LANE_COLUMNS; j++) {
        const int column = key + sum.column(j, lane);
        if (query < end_query && column < sizes.keys) {
          to[size_t(query) * sizes.keys + column] = MASK_T(sum.get(i, j));
        }
      }
    }
  } else {
    float sums[Scores::LANE_COLUMNS];
    column_sum(sum, sums);
    for (int j = 0; j < Scores::LANE_COLUMNS; j++) {
      const int column = key + sum.column(j, lane);
      if (column < sizes.keys && sum.row(0, lane) == 0) {
        to[column] = MASK_T(sums[j]);
      }
    }
  }
}
