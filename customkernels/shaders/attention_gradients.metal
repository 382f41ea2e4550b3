// The gradients of q, k and v of attention in one kernel, for executors whose simdgroups have one lane. attention.h has
// the formulas. Reference: compare/oracle/attention.go, Attention.VJP.
//
// The kernel computes five products where attention_dq and attention_dkv compute seven. A threadgroup owns every
// groups-th block of BLOCK_M keys of a head and iterates over the queries of the G heads that share the keys. It adds
// its terms of dq to an array of its own, [batch, heads, Lq, D] in float, part x of dq_parts. column_sum adds the
// parts.
//
// Launch: the position of a threadgroup, one thread, is the part along x, the key head along y and the batch along z.
// `blocks` is the number of blocks of keys of a head. The number of parts is a compromise between memory and
// parallelism.
//
// Device traffic for each key head, without masks and statistics, with D = HEAD_DIM and DV = VALUE_DIM:
//
//   elements of T   Lkv·2·(D + DV); for each block of keys G·Lq·(D + DV), and BLOCK_M·D for each panel of queries
//   floats          G·Lq·D for each part, and 2·G·Lq·D for each block of keys

#include "attention_keys.h"

// add_queries adds the terms of all queries that see a block of keys to the gradients of keys, values and queries.
template <bool CAPPED, int BLOCK_N, int HEAD_DIM, typename BLOCK, typename KEYS, typename VALUES, typename KEY_ROWS>
inline void add_queries(
    thread BLOCK& block,
    thread KEYS& keys,
    thread VALUES& values,
    thread const KEY_ROWS& key_rows,
    thread typename BLOCK::HeadTile& dk_sum,
    thread typename BLOCK::ValueTile& dv_sum,
    device float* dq) {
  for (; block.column_head < block.end_head; block.next_head()) {
    for (int query = block.first_column; query < block.end_column; query += BLOCK_N) {
      if (!block.advance(query)) {
        continue;
      }
      typename BLOCK::Scores ds;
      add_key_gradients<CAPPED, false>(block, query, keys, values, ds, dk_sum, dv_sum, nullptr);
      device float* const panel = dq + (block.column_row + query) * HEAD_DIM;
      add_scaled_product(panel, min(block.end_column - query, BLOCK_N), ds, key_rows, block.scoring.scale);
    }
  }
}

template <typename T, typename MASK_T, bool CAPPED, bool MASKED, int BLOCK_M, int BLOCK_N, int HEAD_DIM, int VALUE_DIM>
[[kernel]] void attention_gradients(
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
    constant uint& blocks [[buffer(10)]],
    device float* dq_parts [[buffer(11)]],
    device T* dk [[buffer(12)]],
    device T* dv [[buffer(13)]],
    uint3 group [[threadgroup_position_in_grid]],
    uint3 groups [[threadgroups_per_grid]]) {
  typedef AttentionBlock<true, T, MASK_T, CAPPED, MASKED, false, 1, 1, BLOCK_M, BLOCK_N, HEAD_DIM, VALUE_DIM> Block;
  threadgroup T unused[1];
  threadgroup float unused_stats[1];
  const Sizes sizes = load_sizes(size_values);
  const size_t head_elements = size_t(sizes.queries) * HEAD_DIM;
  device float* const dq = dq_parts + size_t(group.x) * groups.z * sizes.query_heads * head_elements;
  const size_t shared = sizes.query_heads / sizes.key_heads;
  const size_t first_element = (size_t(group.z) * sizes.query_heads + group.y * shared) * head_elements;
  for (size_t i = 0; i < shared * head_elements; i++) {
    dq[first_element + i] = 0;
  }

  for (uint index = group.x; index < blocks; index += groups.x) {
    Block block = {};
    if (!block.begin(size_values, scalars, query_starts, key_starts, index, group, 0, 0)) {
      continue;
    }
    typename Block::StoredHeads keys;
    typename Block::StoredValues values;
    typename Block::HeadTile dk_sum;
    typename Block::ValueTile dv_sum;
    Panel<1, T, BLOCK_M, HEAD_DIM> key_rows;
    key_rows.init(unused, k + block.head_offset(block.row), block.rows, 0, 1);
    key_rows.advance(nullptr, 0, 0, 1);
    keys.load(unused, k + block.head_offset(block.row), block.rows, 0);
    values.load(unused, v + block.value_offset(block.row), block.rows, 0);
    fill(dk_sum, 0);
    fill(dv_sum, 0);
    block.walk(q, d_o, mask, unused, unused);
    block.walk_stats(row_stats_in, unused_stats);
    add_queries<CAPPED, BLOCK_N, HEAD_DIM>(block, keys, values, key_rows, dk_sum, dv_sum, dq);
    multiply(dk_sum, block.scoring.scale);
    store(dk_sum, dk + block.head_offset(block.row), HEAD_DIM, block.rows, 0);
    store(dv_sum, dv + block.value_offset(block.row), VALUE_DIM, block.rows, 0);
  }
}
