// The gradients of q, k and v of attention in one kernel, for executors whose simdgroups have one lane. attention.h has
// the formulas. Reference: compare/oracle/attention.go, Attention.VJP.
//
// A threadgroup iterates over blocks of BLOCK_M queries, and for each block over panels of keys. It adds the terms of
// dk and dv to arrays of its own, [batch, key heads, Lkv, D] and [batch, key heads, Lkv, DV] in float, part x of
// dk_parts and dv_parts. column_sum adds the parts.
//
// Without EXACT_DELTA, delta is do·o − dlse, and the kernel computes five products. With EXACT_DELTA, delta is
// Σ_j p_ij·(do_i·v_j) − dlse (attention_backward.metal), which must be known before the first term of a gradient. A
// block then visits the panels twice. The first pass computes delta and stores the tiles of p and do·v in memory of the
// threadgroup. The second pass reads them, so these are five products too. A block of float queries whose probabilities
// are small needs only one pass (has_small_probabilities).
//
// Launch: the position of a threadgroup, one thread, is the part along x, the key head along y and the batch along z. A
// threadgroup owns blocks of all query heads that share the key head. `blocks` is the number of blocks of queries of a
// head. The number of parts is a compromise between memory and parallelism. With EXACT_DELTA, a threadgroup has
// memory for tiles of each panel of keys: p, do·v and, if CAPPED, q·k.
//
// Device traffic for each query head, without masks and statistics, with D = HEAD_DIM and DV = VALUE_DIM:
//
//   elements of T   Lq·(2·D + 2·DV), or with two passes Lq·(2·D + DV); for each block of queries Lkv·(D + DV), or with
//                   two passes Lkv·(2·D + DV)
//   floats          for each panel of keys BLOCK_M·(D + DV); for each block of queries 2·Lkv·(D + DV); for each part of
//                   dk and dv Lkv·(D + DV); with two passes 4·Lq·Lkv, or CAPPED 6·Lq·Lkv

#include "attention.h"

// store_tiles stores p, do·v and, if CAPPED, q·k.
template <bool CAPPED, typename SCORES>
inline void store_tiles(thread SCORES& p, thread SCORES& d_ps, thread SCORES& products, device float* tiles) {
  typedef ElementOrder<SCORES> Order;
  constexpr int TILE = SCORES::LANE_ROWS * SCORES::LANE_COLUMNS;
  for (int a = 0; a < Order::OUTER; a++) {
    for (int b = 0; b < Order::INNER; b++) {
      const int i = Order::row(a, b), j = Order::column(a, b), at = a * Order::INNER + b;
      tiles[at] = p.get(i, j);
      tiles[TILE + at] = d_ps.get(i, j);
      if (CAPPED) {
        tiles[2 * TILE + at] = products.get(i, j);
      }
    }
  }
}

// add_delta is the first of two passes over the keys. It stores the tiles of each panel, and adds p·(do·v) to the delta
// of each query.
template <int PANEL_FLOATS, bool CAPPED, int BLOCK_N, typename BLOCK, typename OPERAND, typename VALUES>
inline void add_delta(thread BLOCK& block, thread OPERAND& queries, thread VALUES& d_os, device float* tiles) {
  typedef typename BLOCK::Scores Scores;
  for (int key = block.first_column; key < block.end_column; key += BLOCK_N, tiles += PANEL_FLOATS) {
    if (!block.advance(key)) {
      continue;
    }
    Scores p, d_ps, products;
    float sums[Scores::LANE_ROWS];
    block.begin_tile(p, key);
    block.begin_tile(d_ps, key);
    multiply_transposed(p, queries, block.heads, 0);
    multiply_transposed(d_ps, d_os, block.values, 0);
    block.probabilities(p, products);
    block.hide(p, 0, key);
    block.hide(d_ps, 0, key);
    store_tiles<CAPPED>(p, d_ps, products, tiles);
    row_dot(p, d_ps, sums);
    for (int i = 0; i < Scores::LANE_ROWS; i++) {
      block.row_stats.delta[i] += sums[i];
    }
  }
}

// load_tiles reads p and, if CAPPED, q·k, and turns do·v into dz.
template <bool CAPPED, typename BLOCK, typename SCORES>
inline void load_tiles(
    thread const BLOCK& block,
    device const float* tiles,
    thread SCORES& p,
    thread SCORES& dz,
    thread SCORES& products) {
  typedef ElementOrder<SCORES> Order;
  constexpr int TILE = SCORES::LANE_ROWS * SCORES::LANE_COLUMNS;
  for (int a = 0; a < Order::OUTER; a++) {
    for (int b = 0; b < Order::INNER; b++) {
      const int i = Order::row(a, b), j = Order::column(a, b), at = a * Order::INNER + b;
      p.set(i, j, tiles[at]);
      dz.set(i, j, tiles[at] * (tiles[TILE + at] - block.row_stats.delta[i]));
      if (CAPPED) {
        products.set(i, j, tiles[2 * TILE + at]);
      }
    }
  }
}

// clear sets the rows of dk and dv from `cleared` to `end` to 0, and moves `cleared` to `end`. Without a window of
// keys, rows become 0 shortly before the first sum, so they are in a cache then.
template <int HEAD_DIM, int VALUE_DIM>
inline void clear(device float* dk, device float* dv, size_t end, thread size_t& cleared) {
  for (size_t i = cleared * HEAD_DIM; i < end * HEAD_DIM; i++) {
    dk[i] = 0;
  }
  for (size_t i = cleared * VALUE_DIM; i < end * VALUE_DIM; i++) {
    dv[i] = 0;
  }
  cleared = max(cleared, end);
}

// add_terms is the last pass over the keys. It adds the terms of the queries to dq and to the rows of dk and dv. The
// tiles come from the first pass if there is one.
template <
    int PANEL_FLOATS,
    bool CAPPED,
    int BLOCK_N,
    int HEAD_DIM,
    int VALUE_DIM,
    typename BLOCK,
    typename OPERAND,
    typename VALUES>
inline void add_terms(
    thread BLOCK& block,
    thread OPERAND& queries,
    thread VALUES& d_os,
    threadgroup const float* query_rows,
    threadgroup const float* d_o_rows,
    device const float* tiles,
    thread typename BLOCK::HeadTile& dq_sum,
    device float* dk,
    device float* dv,
    thread size_t& cleared) {
  for (int key = block.first_column; key < block.end_column; key += BLOCK_N, tiles += PANEL_FLOATS) {
    if (!block.advance(key)) {
      continue;
    }
    const int keys = min(block.end_column - key, BLOCK_N);
    const size_t row = block.column_row + key;
    typename BLOCK::Scores p, ds, products;
    block.begin_tile(p, key);
    block.begin_tile(ds, key);
    if (PANEL_FLOATS > 0) {
      load_tiles<CAPPED>(block, tiles, p, ds, products);
    } else {
      multiply_transposed(p, queries, block.heads, 0);
      multiply_transposed(ds, d_os, block.values, 0);
      block.probabilities(p, products);
      block.hide(p, 0, key);
      block.mask_gradients(ds, p);
    }
    uncap<CAPPED>(ds, products, block.scoring);
    clear<HEAD_DIM, VALUE_DIM>(dk, dv, row + keys, cleared);
    add_scaled_product<VALUE_DIM>(dv + row * VALUE_DIM, keys, p, d_o_rows, 1);
    multiply_add(dq_sum, ds, block.heads, 0);
    add_scaled_product<HEAD_DIM>(dk + row * HEAD_DIM, keys, ds, query_rows, block.scoring.scale);
  }
}

// has_small_probabilities reports whether no query of the block gives a key more than an eighth of its weight. delta is
// a mean of do·v over the keys, and dS = p·(do·v − delta). Only for a key with most of the weight is do·v almost delta,
// so that the difference could consist of the rounding errors of a delta from o.
template <typename BLOCK>
inline bool has_small_probabilities(thread const BLOCK& block) {
  bool are_small = true;
  for (int i = 0; i < BLOCK::Scores::LANE_ROWS; i++) {
    are_small = are_small && block.row_stats.inverse_sum[i] <= 0.125f;  // exp(m − m) / l, the largest one
  }
  return are_small;
}

// add_output_delta adds do·o to the delta of each query.
template <int VALUE_DIM, typename BLOCK, typename VALUES>
inline void add_output_delta(thread BLOCK& block, thread VALUES& d_os, thread VALUES& outputs) {
  constexpr int ROWS = BLOCK::Scores::LANE_ROWS;
  float sums[ROWS] = {};
  for (int j = 0; j < VALUE_DIM; j++) {
    for (int i = 0; i < ROWS; i++) {
      sums[i] = fma(d_os.get(i, j), outputs.get(i, j), sums[i]);
    }
  }
  for (int i = 0; i < ROWS; i++) {
    block.row_stats.delta[i] += sums[i];
  }
}

// copy_rows copies rows of COLUMNS elements as floats. Rows at or beyond `rows` become zero.
template <int ROWS, int COLUMNS, typename T>
inline void copy_rows(device const T* from, int rows, threadgroup float* to) {
  const int elements = min(rows, ROWS) * COLUMNS;
  for (int i = 0; i < elements; i++) {
    to[i] = float(from[i]);
  }
  for (int i = elements; i < ROWS * COLUMNS; i++) {
    to[i] = 0;
  }
}

// add_block computes dq and the RowStats of a block of queries, and adds their terms to dk and dv. query_rows and
// d_o_rows are memory for the block's rows of q and do as floats, `tiles` for PANEL_FLOATS floats of each panel of
// keys.
template <
    int PANEL_FLOATS,
    typename T,
    bool CAPPED,
    bool HAS_DLSE,
    int BLOCK_M,
    int BLOCK_N,
    int HEAD_DIM,
    int VALUE_DIM,
    typename BLOCK,
    typename MASK_T>
inline void add_block(
    thread BLOCK& block,
    device const T* q,
    device const T* k,
    device const T* v,
    device const MASK_T* mask,
    device const T* o,
    device const T* d_o,
    device const float* statistics,
    device const float* dlse,
    threadgroup float* query_rows,
    threadgroup float* d_o_rows,
    device float* row_stats_out,
    device T* dq,
    device float* dk,
    device float* dv,
    thread size_t& cleared,
    device float* tiles) {
  typename BLOCK::HeadOperand queries;
  typename BLOCK::WideValues d_os;
  typename BLOCK::HeadTile dq_sum;
  const size_t head_offset = block.head_offset(block.row), value_offset = block.value_offset(block.row);
  copy_rows<BLOCK_M, HEAD_DIM>(q + head_offset, block.rows, query_rows);
  copy_rows<BLOCK_M, VALUE_DIM>(d_o + value_offset, block.rows, d_o_rows);
  queries.load(q + head_offset, HEAD_DIM, block.rows, 0);
  d_os.load(nullptr, d_o + value_offset, block.rows, 0);
  fill(dq_sum, 0);
  load_statistics<T, HAS_DLSE>(block, statistics, dlse);
  if (PANEL_FLOATS > 0 && (sizeof(T) < sizeof(float) || !has_small_probabilities(block))) {
    block.walk(k, v, mask, nullptr, nullptr);
    add_delta<PANEL_FLOATS, CAPPED, BLOCK_N>(block, queries, d_os, tiles);
    block.walk(k, v, mask, nullptr, nullptr);
    add_terms<PANEL_FLOATS, CAPPED, BLOCK_N, HEAD_DIM, VALUE_DIM>(
        block, queries, d_os, query_rows, d_o_rows, tiles, dq_sum, dk, dv, cleared);
  } else {
    typename BLOCK::WideValues outputs;
    outputs.load(nullptr, o + value_offset, block.rows, 0);
    add_output_delta<VALUE_DIM>(block, d_os, outputs);
    block.walk(k, v, mask, nullptr, nullptr);
    add_terms<0, CAPPED, BLOCK_N, HEAD_DIM, VALUE_DIM>(
        block, queries, d_os, query_rows, d_o_rows, tiles, dq_sum, dk, dv, cleared);
  }
  multiply(dq_sum, block.scoring.scale);
  store(dq_sum, dq + head_offset, HEAD_DIM, block.rows, 0);
  store_statistics(block, row_stats_out);
}

template <
    typename T,
    typename MASK_T,
    bool CAPPED,
    bool MASKED,
    int BLOCK_M,
    int BLOCK_N,
    int HEAD_DIM,
    int VALUE_DIM,
    bool HAS_DLSE,
    bool EXACT_DELTA>
[[kernel]] void attention_gradients(
    device const T* q [[buffer(0)]],
    device const T* k [[buffer(1)]],
    device const T* v [[buffer(2)]],
    device const MASK_T* mask [[buffer(3)]],
    device const T* o [[buffer(4)]],
    device const T* d_o [[buffer(5)]],
    device const float* statistics [[buffer(6)]],
    device const float* dlse [[buffer(7)]],
    device const int* query_starts [[buffer(8)]],
    device const int* key_starts [[buffer(9)]],
    device const int* size_values [[buffer(10)]],
    device const float* scalars [[buffer(11)]],
    constant uint& blocks [[buffer(12)]],
    device float* row_stats_out [[buffer(13)]],
    device T* dq [[buffer(14)]],
    device float* dk_parts [[buffer(15)]],
    device float* dv_parts [[buffer(16)]],
    device float* memory [[buffer(17)]],
    uint3 group [[threadgroup_position_in_grid]],
    uint3 groups [[threadgroups_per_grid]]) {
  typedef AttentionBlock<false, T, MASK_T, CAPPED, MASKED, false, 1, 1, BLOCK_M, BLOCK_N, HEAD_DIM, VALUE_DIM> Block;
  constexpr int PANEL_FLOATS = !EXACT_DELTA ? 0 : (CAPPED ? 3 : 2) * BLOCK_M * BLOCK_N;
  threadgroup float query_rows[BLOCK_M * HEAD_DIM];
  threadgroup float d_o_rows[BLOCK_M * VALUE_DIM];
  const Sizes sizes = load_sizes(size_values);
  const size_t own_head = size_t(group.z) * groups.y + group.y, keys = sizes.keys;
  const size_t part_rows = group.x * groups.z * groups.y * keys;
  device float* const dk = dk_parts + part_rows * HEAD_DIM;
  device float* const dv = dv_parts + part_rows * VALUE_DIM;
  size_t cleared = own_head * keys;
  const size_t panels = (sizes.keys + BLOCK_N - 1) / BLOCK_N;
  device float* const tiles = memory + (own_head * groups.x + group.x) * panels * PANEL_FLOATS;
  const uint shared = sizes.query_heads / sizes.key_heads;

  // Under a causal mask the last queries see the most keys. Each head begins with them, so that its last blocks are
  // short. The direction alternates, so that each threadgroup has as many keys.
  const uint own_blocks = blocks * shared;
  for (uint first = 0; first < own_blocks; first += groups.x) {
    const uint n = first + (first / groups.x % 2 == 0 ? group.x : groups.x - 1 - group.x);
    Block block = {};
    const uint3 position = {group.x, group.y * shared + n / blocks, group.z};
    const uint index = blocks - 1 - n % blocks;
    if (n >= own_blocks || !block.begin(size_values, scalars, query_starts, key_starts, index, position, 0, 0)) {
      continue;
    }
    add_block<PANEL_FLOATS, T, CAPPED, HAS_DLSE, BLOCK_M, BLOCK_N, HEAD_DIM, VALUE_DIM>(
        block, q, k, v, mask, o, d_o, statistics, dlse, query_rows, d_o_rows, row_stats_out, dq, dk, dv, cleared,
        tiles);
#ifdef MLXG_PAUSES
    mlxg::pause();
#endif
  }
  clear<HEAD_DIM, VALUE_DIM>(dk, dv, (own_head + 1) * keys, cleared);
}
