// The forward pass of attention. attention.h has the formulas and the launch.
// Reference: compare/oracle/attention.go, Attention.Forward.
//
// attention_forward computes o and, for each query, m, which is close to the largest score, and l = exp(lse − m).
// p_ij = exp(s_ij − m) / l is more accurate than exp(s_ij − lse) with a rounded lse. A simdgroup owns BLOCK_M queries
// and iterates over keys.
//
// Device traffic in elements of T, for each query head, without masks and statistics, with D = HEAD_DIM and
// DV = VALUE_DIM: Lq·(D + DV), and Lkv·(D + DV) for each block of queries.

#include "attention.h"

// OnlineSoftmax is the softmax of rows whose scores arrive in tiles. maximum is at most SLACK below the largest score
// so far, and sum is the sum of exp(score − maximum). With a positive SLACK, earlier exponentials rarely have to be
// rescaled. SLACK is positive only if exponentials are powers of 2. T must be able to represent 2^SLACK.
//
// If SCALES, a tile has products q·k. add then multiplies by the positive `factor` and subtracts the maximum in one
// instruction.
template <typename T, typename SCORES, int SLACK, bool SCALES>
struct OnlineSoftmax {
  float maximum[SCORES::LANE_ROWS], sum[SCORES::LANE_ROWS];

  // init starts all rows with the score of a sink, or −∞ without a sink.
  void init(float sink) {
    for (int i = 0; i < SCORES::LANE_ROWS; i++) {
      maximum[i] = sink;
      sum[i] = maximum[i] == -INFINITY ? 0 : 1;
    }
  }

  // add replaces the scores of a tile by exp(score − maximum). Earlier exponentials are relative to the old maximum, so
  // the caller must multiply its sums of them by `rescale`. add reports whether all factors of the lane are 1.
  bool add(thread SCORES& tile, float factor, thread float* rescale) {
    typedef ElementOrder<SCORES> Order;
    float largest[SCORES::LANE_ROWS], base[SCORES::LANE_ROWS], sums[SCORES::LANE_ROWS];
    row_max(tile, largest);
    for (int i = 0; i < SCORES::LANE_ROWS; i++) {
      largest[i] = SCALES ? largest[i] * factor : largest[i];
      largest[i] = largest[i] > maximum[i] + SLACK ? largest[i] : maximum[i];
      base[i] = largest[i] == -INFINITY ? 0.0f : largest[i];
      rescale[i] = Exponential<T>::of(maximum[i] - base[i]);
      maximum[i] = largest[i];
    }
    if (SCALES) {
      for (int a = 0; a < Order::OUTER; a++) {
        for (int b = 0; b < Order::INNER; b++) {
          const int i = Order::row(a, b), j = Order::column(a, b);
          tile.set(i, j, Exponential<T>::of(fma(tile.get(i, j), factor, -base[i])));
        }
      }
      row_sum(tile, sums);
    } else {
      Exponential<T>::replace_and_sum(tile, base, sums);
    }
    bool is_one = true;
    for (int i = 0; i < SCORES::LANE_ROWS; i++) {
      sum[i] = sum[i] * rescale[i] + sums[i];
      is_one = is_one & (rescale[i] == 1);
    }
    return is_one;
  }
};

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
[[kernel]] void attention_forward(
    device const T* q [[buffer(0)]],
    device const T* k [[buffer(1)]],
    device const T* v [[buffer(2)]],
    device const MASK_T* mask [[buffer(3)]],
    device const float* sinks [[buffer(4)]],
    device const int* query_starts [[buffer(5)]],
    device const int* key_starts [[buffer(6)]],
    device const int* size_values [[buffer(7)]],
    device const float* scalars [[buffer(8)]],
    device T* o [[buffer(9)]],
    device float* statistics [[buffer(10)]],
    uint3 group [[threadgroup_position_in_grid]],
    uint3 groups [[threadgroups_per_grid]],
    uint lane [[thread_index_in_simdgroup]],
    uint simdgroup [[simdgroup_index_in_threadgroup]]) {
  typedef AttentionBlock<
      false, T, MASK_T, CAPPED, MASKED, PAIRED, LANES, SIMDGROUPS, BLOCK_M, BLOCK_N, HEAD_DIM, VALUE_DIM,
      FOR_TRANSPOSED, FOR_ADD>
      Block;
  typedef typename Block::Scores Scores;
  threadgroup T key_memory[Block::HEAD_MEMORY];
  threadgroup T value_memory[Block::VALUE_MEMORY];
  threadgroup Vec<float, 2> partial_memory[Block::PARTIAL_MEMORY];
  Block block = {};
  const uint index = groups.x - 1 - group.x;
  if (!block.begin(size_values, scalars, query_starts, key_starts, index, group, lane, simdgroup)) {
    return;
  }

  typename Block::HeadOperand queries;
  queries.load(q + block.head_offset(block.row), HEAD_DIM, block.rows, block.lane);
  typename Block::ValueTile sum;
  fill(sum, 0);
  constexpr bool SCALES = LANES > 32 && !CAPPED;
  const bool is_scaled = !SCALES || block.scoring.scale <= 0;  // softmax gets scores, not products
  const float factor = is_scaled ? 1.0f : block.scoring.scale * block.scoring.unit;
  OnlineSoftmax<T, Scores, (LANES > 32 ? 8 : 0), SCALES> softmax;
  softmax.init(sinks[block.head] * block.scoring.unit);

  block.walk(k, v, mask, key_memory, value_memory);
  for (int key = block.first_column; key < block.end_column; key += BLOCK_N) {
    if (!block.advance(key)) {
      continue;
    }
    Scores s;
    float rescale[Scores::LANE_ROWS];
    block.begin_tile(s, key);
    multiply_transposed(s, queries, block.heads, block.lane);
    block.template complete<0, true>(s, partial_memory);
    if (is_scaled) {
      block.score(s);
    }
    block.hide(s, -INFINITY, key);
    const bool are_one = softmax.add(s, factor, rescale);  // mostly true after the first panels
    rescale_and_add(sum, rescale, are_one, s, block.values, block.lane);
    finish<0>(sum);
  }

  float divisors[Scores::LANE_ROWS];
  for (int i = 0; i < Scores::LANE_ROWS; i++) {
    divisors[i] = softmax.sum[i] == 0 ? 1.0f : softmax.sum[i];  // all scores of a row that sees no key are −∞
  }
  divide_rows(sum, divisors);
  store(sum, o + block.value_offset(block.row), VALUE_DIM, block.rows, block.lane);
  for (int i = 0; i < Scores::LANE_ROWS; i++) {
    const int r = Scores::row(i, block.lane);
    // One of the lanes that share the row writes.
    if (r < block.rows && Scores::column(0, block.lane) == 0 && block.part == 0) {
      const float m = softmax.maximum[i];
      statistics[2 * (block.row + r)] = m == -INFINITY ? 0.0f : m / block.scoring.unit;
      statistics[2 * (block.row + r) + 1] = softmax.sum[i];
    }
  }
}
