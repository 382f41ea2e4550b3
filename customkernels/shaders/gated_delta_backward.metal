// The backward kernels of the gated delta rule. gated_delta.h has the formulas and the launch.
//
// gated_delta_gradients also writes dR and, as scratch, dP and dA. dq and dk have the heads of v; the operation adds
// the heads that share a head of q and k.
//
// Device traffic in floats for each step and value head, with D = HEAD_DIM, DV = VALUE_DIM and C = CHUNK:
//
//   gated_delta_state_gradients  DV + 2·D·DV / C written; 3·D + C for each block of columns, 3·DV + 3·D·DV / C read
//   gated_delta_gradients        2·D + 2·DV + 2·C written; 7·D + 10·DV + 6·C + 3·D·DV / C read

#include "gated_delta.h"

template <int LANES, int SIMDGROUPS, int CHUNK, int HEAD_DIM, int VALUE_DIM, int HEAD_BLOCK, int VALUE_BLOCK>
[[kernel]] void gated_delta_state_gradients(
    device const float* q [[buffer(0)]],
    device const float* k [[buffer(1)]],
    device const float* steps [[buffer(2)]],
    device const float* scores [[buffer(3)]],
    device const float* keys [[buffer(4)]],
    device const float* d_o [[buffer(5)]],
    device const float* d_final [[buffer(6)]],
    device const int* starts [[buffer(7)]],
    device const int* size_values [[buffer(8)]],
    device float* d_updates [[buffer(9)]],
    device float* d_states [[buffer(10)]],
    device float* d_initial [[buffer(11)]],
    uint3 group [[threadgroup_position_in_grid]],
    uint lane [[thread_index_in_simdgroup]],
    uint simdgroup [[simdgroup_index_in_threadgroup]]) {
  typedef DeltaChunk<LANES, SIMDGROUPS, CHUNK, HEAD_DIM, VALUE_DIM, HEAD_BLOCK, VALUE_BLOCK> Block;
  threadgroup float memory[Block::STATE_MEMORY];
  Block block = {};
  block.init(size_values, group, lane, simdgroup);
  StateWalk<Block, CHUNK, VALUE_DIM, VALUE_BLOCK> walk;
  walk.init(block, starts, group.x);
  // The gradient of the state after chunk i is in the slot of chunk i.
  block.copy_state(
      d_final + walk.outer_state * Block::STATE_SIZE + walk.column, walk.state(d_states, d_initial, walk.chunks - 1));
  for (int i = walk.chunks - 1; i >= 0; i--) {
    block.range = walk.chunk(i);
    device float* const after = walk.state(d_states, d_initial, i);
    device float* const before = walk.state(d_states, d_initial, i - 1);
    const typename Block::Columns of_outputs = {block.square(scores), CHUNK, CHUNK, CHUNK, nullptr};
    const typename Block::Values outputs = {d_o + block.value_row() * VALUE_DIM + walk.column, block.range.steps};
    device float* const update = d_updates + block.slot() * (CHUNK * VALUE_DIM) + walk.column;
    typename Block::ValueTile tile;
    fill(tile, 0);
    add_product<Block::HEAD_TERMS>(
        tile, block.head_rows(k), block.first_row, typename Block::Values{after, HEAD_DIM}, memory, block.team);
    scale_rows(tile, block.field(steps, STEP_TO_END) + block.first_row, block.team.lane);
    add_product<Block::STEP_TERMS>(tile, of_outputs, block.first_row, outputs, memory, block.team);
    store(tile, update + block.first_row * VALUE_DIM, VALUE_DIM, Block::ROWS, block.team.lane);

    const typename Block::ScaledColumns queries = {
        q + block.key_row() * HEAD_DIM, HEAD_DIM, block.range.steps, HEAD_DIM, block.field(steps, STEP_QUERY)};
    const typename Block::Columns of_updates = {
        keys + block.slot() * (CHUNK * HEAD_DIM), HEAD_DIM, CHUNK, HEAD_DIM, nullptr};
    const float decay = block.field(steps, STEP_FROM_START)[CHUNK - 1];
    const typename Block::Values updates = {update, block.range.steps};
    for (int row = block.first_row; row < block.first_row + HEAD_DIM; row += CHUNK) {
      // Late steps have decayed most. Adding small terms first makes the smallest error.
      block.load_state(tile, after, row);
      multiply(tile, decay);
      add_product<Block::STEP_TERMS>(tile, queries, row, outputs.descending(), memory, block.team);
      add_product<Block::STEP_TERMS>(tile, of_updates, row, updates.descending(), memory, block.team);
      block.store_state(tile, before, row);
    }
  }
}

// write_update_gradients computes dR and dV, and adds v·dr to the sums.
template <int VALUE_DIM, int VALUE_BLOCK, int CHUNK, typename BLOCK>
inline void write_update_gradients(
    thread BLOCK& block,
    device const float* v,
    device const float* steps,
    device const float* inverse,
    device const float* d_updates,
    device float* d_r,
    device float* dv,
    thread DecaySum* sums,
    threadgroup float* memory) {
  const typename BLOCK::Columns left = {block.square(inverse), CHUNK, CHUNK, CHUNK, nullptr};
  const typename BLOCK::Rows values = {
      v + block.value_row() * VALUE_DIM, VALUE_DIM, block.range.steps, VALUE_DIM, nullptr};
  const size_t first = (block.slot() * CHUNK + block.first_row) * VALUE_DIM;
  for (int column = 0; column < VALUE_DIM; column += VALUE_BLOCK) {
    typename BLOCK::ValueTile tile;
    fill(tile, 0);
    const typename BLOCK::Values right = {d_updates + block.slot() * (CHUNK * VALUE_DIM) + column, block.range.steps};
    add_product<BLOCK::STEP_TERMS>(tile, left, block.first_row, right, memory, block.team);
    const typename BLOCK::Rows own = {right.elements, VALUE_DIM, right.rows, VALUE_BLOCK, nullptr};
    typename BLOCK::ValueTile rows;
    own.load(rows, block.first_row, 0, block.team.lane);
    add(tile, rows);
    store(tile, d_r + first + column, VALUE_DIM, BLOCK::ROWS, block.team.lane);
    add_row_products(sums, tile, values, block.first_row, column, block.team.lane);
    scale_rows(tile, block.field(steps, STEP_BETA) + block.first_row, block.team.lane);
    store(
        tile, dv + (block.value_row() + block.first_row) * VALUE_DIM + column, VALUE_DIM,
        block.range.steps - block.first_row, block.team.lane);
  }
}

// A PairSums holds M in threadgroup memory, below the diagonal, and sums it over the pairs of steps around each step.
// It has the rows and columns of the chunk's steps.
template <int CHUNK>
struct PairSums {
  static constexpr constant int PITCH = CHUNK + 1;  // rows and columns without bank conflicts
  static constexpr constant int SIZE = CHUNK * PITCH;

  // add adds factor · products ⊙ scores. If FIRST, it overwrites.
  template <bool FIRST, typename BLOCK>
  static void add(
      threadgroup float* pairs,
      thread BLOCK& block,
      thread typename BLOCK::Scores& products,
      device const float* scores,
      float factor) {
    device const float* const square = block.square(scores);
    for (int i = 0; i < products.LANE_ROWS; i++) {
      for (int j = 0; j < products.LANE_COLUMNS; j++) {
        const int t = block.first_row + products.row(i, block.team.lane);
        const int earlier = products.column(j, block.team.lane);
        if (earlier < t && t < block.range.steps) {
          const float value = factor * (products.get(i, j) * square[t * CHUNK + earlier]);
          pairs[t * PITCH + earlier] = FIRST ? value : pairs[t * PITCH + earlier] + value;
        }
      }
    }
  }

  // sum_rows replaces element t of row s, t ≤ s, by the sum of M_sj over j < t.
  template <typename TEAM>
  static void sum_rows(threadgroup float* pairs, int steps, TEAM team) {
    for (int s = team.index(); s < steps; s += TEAM::THREADS) {
      DecaySum sum = {0, 0};
      for (int t = 0; t < s; t++) {
        const float value = pairs[s * PITCH + t];
        pairs[s * PITCH + t] = sum.total();
        sum.add(value);
      }
      pairs[s * PITCH + s] = sum.total();
    }
  }

  // sum_columns writes the sums over the rows s ≥ t of element t.
  template <typename TEAM>
  static void sum_columns(threadgroup const float* pairs, threadgroup float* sums, int steps, TEAM team) {
    for (int t = team.index(); t < steps; t += TEAM::THREADS) {
      DecaySum sum = {0, 0};
      for (int s = steps - 1; s >= t; s--) {
        sum.add(pairs[s * PITCH + t]);
      }
      sums[t] = sum.total();
    }
  }
};

// write_score_gradients computes dP below its diagonal, the diagonal, dA, and M.
template <int VALUE_DIM, int VALUE_BLOCK, int CHUNK, typename BLOCK>
inline void write_score_gradients(
    thread BLOCK& block,
    device const float* steps,
    device const float* scores,
    device const float* key_scores,
    device const float* updates,
    device const float* d_o,
    device const float* d_r,
    float scale,
    device float* d_scores,
    threadgroup float* pairs,
    threadgroup float* diagonal,
    threadgroup float* memory) {
  const typename BLOCK::Values right = {updates + block.slot() * (CHUNK * VALUE_DIM), block.range.steps};
  const int rows = block.range.steps - block.first_row;
  device float* const to = d_scores + 2 * block.slot() * (CHUNK * CHUNK) + block.first_row * CHUNK;
  typename BLOCK::Scores products;
  fill(products, 0);
  device const float* const of_outputs = d_o + (block.value_row() + block.first_row) * VALUE_DIM;
  add_transposed_product<VALUE_BLOCK>(products, of_outputs, rows, right, memory, block.team);
  PairSums<CHUNK>::template add<true>(pairs, block, products, scores, 1);
  multiply(products, scale);
  for (int i = 0; i < products.LANE_ROWS; i++) {
    for (int j = 0; j < products.LANE_COLUMNS; j++) {
      const int t = block.first_row + products.row(i, block.team.lane);
      if (products.column(j, block.team.lane) == t) {
        diagonal[t] = products.get(i, j);
      }
    }
  }
  block.template decay_scores<true>(products, steps, 1);
  store(products, to, CHUNK, BLOCK::ROWS, block.team.lane);
  fill(products, 0);
  device const float* const of_updates = d_r + (block.slot() * CHUNK + block.first_row) * VALUE_DIM;
  add_transposed_product<VALUE_BLOCK>(products, of_updates, rows, right, memory, block.team);
  PairSums<CHUNK>::template add<false>(pairs, block, products, key_scores, -1);
  block.template decay_scores<true>(products, steps, -1);
  store(products, to + CHUNK * CHUNK, CHUNK, BLOCK::ROWS, block.team.lane);
}

// RowSums holds sums over HEAD_DIM for each of the lane's rows.
template <int N>
struct RowSums {
  DecaySum decays[N];  // the row's terms of the gradient of log α
  DecaySum betas[N];   // v·dr + k·x
  DecaySum states[N];  // k·y
};

// write_head_gradients computes HEAD_BLOCK columns of dq and dk from `column` on.
template <int VALUE_DIM, int HEAD_DIM, int HEAD_BLOCK, int VALUE_BLOCK, int CHUNK, typename BLOCK, typename SUMS>
inline void write_head_gradients(
    thread BLOCK& block,
    int column,
    device const float* q,
    device const float* k,
    device const float* steps,
    device const float* updates,
    device const float* states,
    device const float* d_states,
    device const float* d_o,
    device const float* d_r,
    device const float* d_scores,
    device float* dq,
    device float* dk,
    threadgroup const float* diagonal,
    thread SUMS& sums,
    threadgroup float* memory) {
  typedef typename BLOCK::HeadTile HeadTile;
  const int row = block.first_row, rows = block.range.steps - row, lane = block.team.lane;
  const size_t own = (block.slot() * CHUNK + row) * VALUE_DIM, first = (block.value_row() + row) * HEAD_DIM + column;
  const typename BLOCK::Values state = {states + block.slot() * BLOCK::STATE_SIZE + column * VALUE_DIM, HEAD_BLOCK};
  const typename BLOCK::Values d_state = {d_states + block.slot() * BLOCK::STATE_SIZE + column * VALUE_DIM, HEAD_BLOCK};
  const typename BLOCK::Heads queries = {q + block.key_row() * HEAD_DIM + column, block.range.steps};
  const typename BLOCK::Heads keys = {k + block.key_row() * HEAD_DIM + column, block.range.steps};
  const typename BLOCK::Rows query_rows = block.head_rows(q), key_rows = block.head_rows(k);
  device const float* const dp = d_scores + 2 * block.slot() * (CHUNK * CHUNK);
  device const float* const da = dp + CHUNK * CHUNK;
  device const float* const beta = block.field(steps, STEP_BETA);

  HeadTile tile, sum;
  fill(tile, 0);
  add_transposed_product<VALUE_BLOCK>(
      tile, d_o + (block.value_row() + row) * VALUE_DIM, rows, state, memory, block.team);
  scale_rows(tile, block.field(steps, STEP_QUERY) + row, lane);
  add_row_products(sums.decays, tile, query_rows, row, column, lane);
  add_product<BLOCK::STEP_TERMS>(
      tile, typename BLOCK::Rows{dp, CHUNK, CHUNK, CHUNK, nullptr}, row, keys, memory, block.team);
  add_rows(tile, diagonal + row, key_rows, row, column, lane);
  store(tile, dq + first, HEAD_DIM, rows, lane);

  fill(tile, 0);
  add_transposed_product<VALUE_BLOCK>(tile, d_r + own, rows, state, memory, block.team);
  scale_rows(tile, block.field(steps, STEP_FROM_START) + row, lane);
  multiply(tile, -1);
  sum = tile;
  scale_rows(sum, beta + row, lane);
  add_row_products(sums.decays, sum, key_rows, row, column, lane);
  add_product<BLOCK::STEP_TERMS>(
      tile, typename BLOCK::Rows{da, CHUNK, CHUNK, CHUNK, nullptr}, row, keys, memory, block.team);
  add_row_products(sums.betas, tile, key_rows, row, column, lane);
  scale_rows(tile, beta + row, lane);
  add_product<BLOCK::STEP_TERMS>(
      tile, typename BLOCK::Columns{dp, CHUNK, CHUNK, CHUNK, nullptr}, row, queries, memory, block.team);
  add_product<BLOCK::STEP_TERMS>(
      tile, typename BLOCK::ScaledColumns{da, CHUNK, CHUNK, CHUNK, beta}, row, keys, memory, block.team);
  sum = tile;

  fill(tile, 0);
  add_transposed_product<VALUE_BLOCK>(tile, updates + own, rows, d_state, memory, block.team);
  scale_rows(tile, block.field(steps, STEP_TO_END) + row, lane);
  add_row_products(sums.states, tile, key_rows, row, column, lane);
  add(sum, tile);
  add_rows(sum, diagonal + row, query_rows, row, column, lane);
  store(sum, dk + first, HEAD_DIM, rows, lane);
}

// state_product returns a thread's part of ⟨S, dS_C⟩: the rows of its index and every THREADS rows after it.
template <int HEAD_DIM, int VALUE_DIM, int THREADS>
inline float state_product(device const float* state, device const float* d_state, uint index) {
  float sum = 0;
  for (int row = index; row < HEAD_DIM; row += THREADS) {
    float parts[8] = {};
    for (int column = 0; column < VALUE_DIM; column += 8) {
      for (int n = 0; n < 8; n++) {
        const int at = row * VALUE_DIM + column + n;
        parts[n] += state[at] * d_state[at];
      }
    }
    sum += Pairwise<8>::sum(parts);
  }
  return sum;
}

// write_decay_gradients computes the gradients of log α from the sums of all rows. One thread calls it.
inline void write_decay_gradients(
    threadgroup float* of_rows,
    threadgroup const float* of_pairs,
    threadgroup const float* of_states,
    float of_end,
    device const float* log_decay,
    device float* to,
    int steps) {
  DecaySum sum = {0, 0};
  for (int t = steps - 1; t >= 0; t--) {
    sum.add(of_rows[t]);
    of_rows[t] = sum.total();
  }
  sum = {of_end, 0};
  for (int t = 0; t < steps; t++) {
    // The decay is 0 at and below LEAST_LOG_DECAY, and so is its derivative.
    to[t] = log_decay[t] > LEAST_LOG_DECAY ? sum.total() + (of_rows[t] + of_pairs[t]) : 0.0f;
    sum.add(of_states[t]);
  }
}

template <int LANES, int SIMDGROUPS, int CHUNK, int HEAD_DIM, int VALUE_DIM, int HEAD_BLOCK, int VALUE_BLOCK>
[[kernel]] void gated_delta_gradients(
    device const float* q [[buffer(0)]],
    device const float* k [[buffer(1)]],
    device const float* v [[buffer(2)]],
    device const float* log_decay [[buffer(3)]],
    device const float* steps [[buffer(4)]],
    device const float* inverse [[buffer(5)]],
    device const float* updates [[buffer(6)]],
    device const float* d_updates [[buffer(7)]],
    device const float* states [[buffer(8)]],
    device const float* d_states [[buffer(9)]],
    device const float* d_o [[buffer(10)]],
    device const int* starts [[buffer(11)]],
    device const int* size_values [[buffer(12)]],
    device const float* scalars [[buffer(13)]],
    device const float* scores [[buffer(14)]],
    device const float* key_scores [[buffer(15)]],
    device float* dq [[buffer(16)]],
    device float* dk [[buffer(17)]],
    device float* dv [[buffer(18)]],
    device float* d_log_decay [[buffer(19)]],
    device float* d_beta [[buffer(20)]],
    device float* d_r [[buffer(21)]],
    device float* d_scores [[buffer(22)]],
    uint3 group [[threadgroup_position_in_grid]],
    uint lane [[thread_index_in_simdgroup]],
    uint simdgroup [[simdgroup_index_in_threadgroup]]) {
  typedef DeltaChunk<LANES, SIMDGROUPS, CHUNK, HEAD_DIM, VALUE_DIM, HEAD_BLOCK, VALUE_BLOCK> Block;
  typedef typename Block::HeadTile HeadTile;
  constexpr int THREADS = Block::TEAM::THREADS;
  threadgroup float memory[Block::MEMORY];
  threadgroup float pairs[PairSums<CHUNK>::SIZE];
  threadgroup float of_rows[CHUNK];
  threadgroup float of_pairs[CHUNK];
  threadgroup float of_states[CHUNK];
  threadgroup float of_threads[THREADS];
  threadgroup float diagonal[CHUNK];
  Block block = {};
  block.init(size_values, group, lane, simdgroup);
  block.range = chunk_range<CHUNK>(block.sizes, starts, group.x);
  if (block.range.steps <= 0) {
    return;
  }
  RowSums<HeadTile::LANE_ROWS> sums = {};
  write_update_gradients<VALUE_DIM, VALUE_BLOCK, CHUNK>(
      block, v, steps, inverse, d_updates, d_r, dv, sums.betas, memory);
  Block::TEAM::synchronize();
  write_score_gradients<VALUE_DIM, VALUE_BLOCK, CHUNK>(
      block, steps, scores, key_scores, updates, d_o, d_r, scalars[0], d_scores, pairs, diagonal, memory);
  Block::TEAM::synchronize();
  PairSums<CHUNK>::sum_rows(pairs, block.range.steps, block.team);
  for (int column = 0; column < HEAD_DIM; column += HEAD_BLOCK) {
    write_head_gradients<VALUE_DIM, HEAD_DIM, HEAD_BLOCK, VALUE_BLOCK, CHUNK>(
        block, column, q, k, steps, updates, states, d_states, d_o, d_r, d_scores, dq, dk, diagonal, sums, memory);
  }

  const size_t state = block.slot() * Block::STATE_SIZE;
  of_threads[block.team.index()] =
      state_product<HEAD_DIM, VALUE_DIM, THREADS>(states + state, d_states + state, block.team.index());
  const int rows = block.range.steps - block.first_row;
  store_rows<HeadTile>(sums.decays, of_rows + block.first_row, rows, block.team.lane);
  store_rows<HeadTile>(sums.states, of_states + block.first_row, rows, block.team.lane);
  store_rows<HeadTile>(sums.betas, d_beta + block.value_row() + block.first_row, rows, block.team.lane);
  PairSums<CHUNK>::sum_columns(pairs, of_pairs, block.range.steps, block.team);
  Block::TEAM::synchronize();
  if (block.team.index() == 0) {
    DecaySum product = {0, 0};
    for (int i = 0; i < THREADS; i++) {
      product.add(of_threads[i]);
    }
    write_decay_gradients(
        of_rows, of_pairs, of_states, product.total() * block.field(steps, STEP_FROM_START)[CHUNK - 1],
        log_decay + block.value_row(), d_log_decay + block.value_row(), block.range.steps);
  }
}
