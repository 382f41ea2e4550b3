// The gradients of q, k and v of attention. attention.h has the formulas and the launch.
// Reference: compare/oracle/attention.go, Attention.VJP.
//
//   kernel                     computes          a simdgroup owns             and iterates over
//   attention_delta            RowStats          BLOCK_M queries              keys
//   attention_delta_of_output  RowStats          BLOCK_M rows of all heads    nothing
//   attention_dq               dq                BLOCK_M queries              keys
//   attention_dkv              dk and dv         BLOCK_M keys                 queries of G heads
//
// attention_delta computes delta_i as Σ_j p_ij·(do_i·v_j) − dlse_i. attention_dq and attention_dkv compute do_i·v_j in
// the same way, so rounding errors cancel in do_i·v_j − delta_i. They do not cancel if attention_delta adds partial
// products (PAIRED) and the other kernel does not, or the reverse. Without HAS_DLSE, dlse_i is 0 and is not read.
//
// attention_delta_of_output computes delta_i as do_i·o_i − dlse_i, with one product per row. If T has 16 bits, the
// rounding of o matters only in sums of dz over the keys of a row, because these sums are close to 0. A threadgroup is
// one simdgroup. Its position along x is the index of its block among the rows of all heads.
//
// attention_dkv computes the transposes of s and p, so no tile must be transposed.
//
// Device traffic in elements of T, for each query head (attention_dkv: each key head), without masks and statistics,
// with D = HEAD_DIM and DV = VALUE_DIM:
//
//   attention_delta            Lq·(D + DV), and Lkv·(D + DV) for each block of queries
//   attention_delta_of_output  2·Lq·DV
//   attention_dq               Lq·(2·D + DV), and Lkv·(D + DV) for each block of queries
//   attention_dkv              Lkv·2·(D + DV), and G·Lq·(D + DV) for each block of keys

#include "attention_keys.h"

template <
    typename T,
    typename MASK_T,
    bool CAPPED,
    bool MASKED,
    bool PAIRED,
    int LANES,
    int SIMDGROUPS,
    int BLOCK_M,
    int BLOCK_N,
    int HEAD_DIM,
    int VALUE_DIM,
    bool HAS_DLSE>
[[kernel]] void attention_delta(
    device const T* q [[buffer(0)]],
    device const T* k [[buffer(1)]],
    device const T* v [[buffer(2)]],
    device const MASK_T* mask [[buffer(3)]],
    device const T* d_o [[buffer(4)]],
    device const float* statistics [[buffer(5)]],
    device const float* dlse [[buffer(6)]],
    device const int* query_starts [[buffer(7)]],
    device const int* key_starts [[buffer(8)]],
    device const int* size_values [[buffer(9)]],
    device const float* scalars [[buffer(10)]],
    device float* row_stats_out [[buffer(11)]],
    uint3 group [[threadgroup_position_in_grid]],
    uint3 groups [[threadgroups_per_grid]],
    uint lane [[thread_index_in_simdgroup]],
    uint simdgroup [[simdgroup_index_in_threadgroup]]) {
  typedef AttentionBlock<
      false, T, MASK_T, CAPPED, MASKED, PAIRED, LANES, SIMDGROUPS, BLOCK_M, BLOCK_N, HEAD_DIM, VALUE_DIM,
      FOR_TRANSPOSED, FOR_TRANSPOSED>
      Block;
  typedef typename Block::Scores Scores;
  threadgroup T key_memory[Block::HEAD_MEMORY];
  threadgroup T value_memory[Block::VALUE_MEMORY];
  threadgroup T d_o_memory[Block::WIDE_MEMORY];
  threadgroup Vec<float, 2> partial_memory[Block::PARTIAL_MEMORY];
  Block block = {};
  const uint index = groups.x - 1 - group.x;
  if (!block.begin(size_values, scalars, query_starts, key_starts, index, group, lane, simdgroup)) {
    return;
  }

  typename Block::HeadOperand queries;
  typename Block::WideValues d_os;
  queries.load(q + block.head_offset(block.row), HEAD_DIM, block.rows, block.lane);
  d_os.load(d_o_memory + block.simdgroup * d_os.SIZE, d_o + block.value_offset(block.row), block.rows, block.lane);
  load_statistics<T, HAS_DLSE>(block, statistics, dlse);

  block.walk(k, v, mask, key_memory, value_memory);
  for (int key = block.first_column; key < block.end_column; key += BLOCK_N) {
    if (!block.advance(key)) {
      continue;
    }
    Scores s, d_ps;
    float sums[Scores::LANE_ROWS];
    multiply_transposed(s, queries, block.heads, block.lane);
    multiply_transposed(d_ps, d_os, block.values, block.lane);
    block.template complete<1, true>(s, partial_memory);
    block.score(s);
    block.template complete<0, false>(d_ps, partial_memory);
    for (int a = 0; a < Block::Order::OUTER; a++) {
      for (int b = 0; b < Block::Order::INNER; b++) {
        const int i = Block::Order::row(a, b), j = Block::Order::column(a, b);
        s.set(i, j, Block::probability(block.row_stats.get(i), s.get(i, j)) * d_ps.get(i, j));
      }
    }
    block.hide(s, 0, key);
    row_sum(s, sums);
    for (int i = 0; i < Scores::LANE_ROWS; i++) {
      block.row_stats.delta[i] += sums[i];
    }
  }

  store_statistics(block, row_stats_out);
}

template <typename T, int LANES, int BLOCK_M, int VALUE_DIM, bool HAS_DLSE>
[[kernel]] void attention_delta_of_output(
    device const T* o [[buffer(0)]],
    device const T* d_o [[buffer(1)]],
    device const float* statistics [[buffer(2)]],
    device const float* dlse [[buffer(3)]],
    constant uint& rows [[buffer(4)]],
    device float* row_stats_out [[buffer(5)]],
    uint group [[threadgroup_position_in_grid]],
    uint thread_index [[thread_index_in_threadgroup]],
    uint lane [[thread_index_in_simdgroup]]) {
  threadgroup T output_memory[Panel<LANES, T, BLOCK_M, VALUE_DIM>::SIZE];
  const size_t row = size_t(group) * BLOCK_M;
  const int own = min(rows - row, size_t(BLOCK_M));

  Operand<LANES, T, BLOCK_M, VALUE_DIM> d_os;
  d_os.load(d_o + row * VALUE_DIM, VALUE_DIM, own, lane);
  Panel<LANES, T, BLOCK_M, VALUE_DIM> outputs;
  outputs.init(output_memory, o + row * VALUE_DIM, own, thread_index, LANES);
  acquire(outputs);
  outputs.advance(o, 0, thread_index, LANES);
  commit(outputs);
  // Only the diagonal of do·oᵀ is used. attention_dq and attention_dkv compute do·v with the same tile product, so if o
  // equals one row of v, do·o and do·v have the same bits, unless those kernels are PAIRED and add partial products.
  Tile<LANES, BLOCK_M, BLOCK_M> products;
  multiply_transposed(products, d_os, outputs, lane);
  for (int i = 0; i < products.LANE_ROWS; i++) {
    for (int j = 0; j < products.LANE_COLUMNS; j++) {
      const int r = products.row(i, lane);
      if (r == products.column(j, lane) && r < own) {
        const size_t at = row + r;
        const float delta = products.get(i, j) - (HAS_DLSE ? dlse[at] : 0);
        store(row_stats<T>(statistics[2 * at], statistics[2 * at + 1], delta), row_stats_out + at * ROW_STATS_SIZE);
      }
    }
  }
}

template <
    typename T,
    typename MASK_T,
    bool CAPPED,
    bool MASKED,
    bool PAIRED,
    int LANES,
    int SIMDGROUPS,
    int BLOCK_M,
    int BLOCK_N,
    int HEAD_DIM,
    int VALUE_DIM>
[[kernel]] void attention_dq(
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
    device T* dq [[buffer(10)]],
    uint3 group [[threadgroup_position_in_grid]],
    uint3 groups [[threadgroups_per_grid]],
    uint lane [[thread_index_in_simdgroup]],
    uint simdgroup [[simdgroup_index_in_threadgroup]]) {
  constexpr int AHEAD = PanelUses<T, CAPPED, MASKED, LANES, HEAD_DIM, VALUE_DIM>::AHEAD;
  typedef AttentionBlock<
      false, T, MASK_T, CAPPED, MASKED, PAIRED, LANES, SIMDGROUPS, BLOCK_M, BLOCK_N, HEAD_DIM, VALUE_DIM,
      FOR_BOTH | AHEAD, FOR_TRANSPOSED | AHEAD>
      Block;
  typedef typename Block::Scores Scores;
  threadgroup T key_memory[Block::HEAD_MEMORY];
  threadgroup T value_memory[Block::VALUE_MEMORY];
  threadgroup T d_o_memory[Block::WIDE_MEMORY];
  threadgroup Vec<float, 2> partial_memory[Block::PARTIAL_MEMORY];
  Block block = {};
  const uint index = groups.x - 1 - group.x;
  if (!block.begin(size_values, scalars, query_starts, key_starts, index, group, lane, simdgroup)) {
    return;
  }

  typename Block::HeadOperand queries;
  typename Block::WideValues d_os;
  typename Block::HeadTile sum;
  queries.load(q + block.head_offset(block.row), HEAD_DIM, block.rows, block.lane);
  d_os.load(d_o_memory + block.simdgroup * d_os.SIZE, d_o + block.value_offset(block.row), block.rows, block.lane);
  fill(sum, 0);
  block.load_stats(row_stats_in);

  block.walk(k, v, mask, key_memory, value_memory);
  block.fetch_first();
  for (int key = block.first_column; key < block.end_column; key += BLOCK_N) {
    if (!block.advance(key)) {
      continue;
    }
    Scores s, products, ds;
    multiply_transposed(s, queries, block.heads, block.lane);
    multiply_transposed(ds, d_os, block.values, block.lane);
    block.template complete<1, true>(s, partial_memory);
    block.probabilities(s, products);
    block.template complete<0, false>(ds, partial_memory);
    block.mask_gradients(ds, s);
    block.hide(ds, 0, key);
    uncap<CAPPED>(ds, products, block.scoring);
    multiply_add(sum, ds, block.heads, block.lane);
    block.fetch_next(key);
    finish<0>(sum);
  }

  multiply(sum, block.scoring.scale);
  store(sum, dq + block.head_offset(block.row), HEAD_DIM, block.rows, block.lane);
}

template <
    typename T,
    typename MASK_T,
    bool CAPPED,
    bool MASKED,
    bool PAIRED,
    int LANES,
    int SIMDGROUPS,
    int BLOCK_M,
    int BLOCK_N,
    int HEAD_DIM,
    int VALUE_DIM>
[[kernel]] void attention_dkv(
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
    device T* dk [[buffer(10)]],
    device T* dv [[buffer(11)]],
    uint3 group [[threadgroup_position_in_grid]],
    uint lane [[thread_index_in_simdgroup]],
    uint simdgroup [[simdgroup_index_in_threadgroup]]) {
  constexpr int AHEAD = PanelUses<T, CAPPED, MASKED, LANES, HEAD_DIM, VALUE_DIM>::AHEAD;
  typedef AttentionBlock<
      true, T, MASK_T, CAPPED, MASKED, PAIRED, LANES, SIMDGROUPS, BLOCK_M, BLOCK_N, HEAD_DIM, VALUE_DIM,
      FOR_BOTH | AHEAD, FOR_BOTH | AHEAD>
      Block;
  typedef typename Block::Scores Scores;
  // With heads of 64 columns, three threadgroups share a core (ops/attention_geometry.go), and a lane does not have the
  // registers for both products.
  constexpr bool TOGETHER = HEAD_DIM + VALUE_DIM > 128;
  threadgroup T query_memory[Block::HEAD_MEMORY];
  threadgroup T d_o_memory[Block::VALUE_MEMORY];
  threadgroup float stats_memory[Block::StatsPanel::SIZE];
  threadgroup T operand_memory[Block::OPERAND_MEMORY];
  threadgroup Vec<float, 2> partial_memory[Block::PARTIAL_MEMORY];
  Block block = {};
  if (!block.begin(size_values, scalars, query_starts, key_starts, group.x, group, lane, simdgroup)) {
    return;
  }

  typename Block::StoredHeads keys;
  typename Block::StoredValues values;
  typename Block::HeadTile dk_sum;
  typename Block::ValueTile dv_sum;
  threadgroup T* const stored = operand_memory + block.simdgroup * (keys.SIZE + values.SIZE);
  keys.load(stored, k + block.head_offset(block.row), block.rows, block.lane);
  values.load(stored + keys.SIZE, v + block.value_offset(block.row), block.rows, block.lane);
  fill(dk_sum, 0);
  fill(dv_sum, 0);

  block.walk(q, d_o, mask, query_memory, d_o_memory);
  block.walk_stats(row_stats_in, stats_memory);
  block.fetch_first();
  for (; block.column_head < block.end_head; block.next_head()) {
    for (int query = block.first_column; query < block.end_column; query += BLOCK_N) {
      if (!block.advance(query)) {
        continue;
      }
      Scores ds;
      add_key_gradients<CAPPED, TOGETHER>(block, query, keys, values, ds, dk_sum, dv_sum, partial_memory);
    }
  }

  multiply(dk_sum, block.scoring.scale);
  store(dk_sum, dk + block.head_offset(block.row), HEAD_DIM, block.rows, block.lane);
  store(dv_sum, dv + block.value_offset(block.row), VALUE_DIM, block.rows, block.lane);
}
