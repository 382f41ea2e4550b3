// The forward kernels of the gated delta rule. gated_delta.h has the formulas and the launch.
//
// Device traffic in floats for each step and value head, with D = HEAD_DIM, DV = VALUE_DIM and C = CHUNK:
//
//   gated_delta_chunks  2·D read, and D + 3·C + 9 in all for W, T, P, A and the numbers of the steps
//   gated_delta_states  DV + D·DV / C written; 2·D + C for each block of columns, DV + 2·D·DV / C read
//   gated_delta_output  DV written; D + C for each block of columns, DV + D·DV / C read

#include "gated_delta.h"

// write_steps computes the numbers of the chunk's steps.
template <int CHUNK, typename BLOCK>
inline void write_steps(
    thread BLOCK& block, device const float* log_decay, device const float* beta, float scale, device float* steps) {
  device float* const to = steps + block.slot() * (STEP_FIELDS * CHUNK);
  const int last = CHUNK - 1;
  if (block.team.index() == 0) {
    DecaySum sum = {0, 0};
    for (int t = 0; t < CHUNK; t++) {
      if (t < block.range.steps) {
        sum.add_log_decay(log_decay[block.value_row() + t]);
      }
      to[STEP_HIGH * CHUNK + t] = sum.high;
      to[STEP_LOW * CHUNK + t] = sum.low;
    }
  }
  BLOCK::TEAM::synchronize();
  const DecaySum end = {to[STEP_HIGH * CHUNK + last], to[STEP_LOW * CHUNK + last]};
  for (int t = block.team.index(); t < CHUNK; t += BLOCK::TEAM::THREADS) {
    const DecaySum sum = {to[STEP_HIGH * CHUNK + t], to[STEP_LOW * CHUNK + t]};
    const float from_start = exp(sum.total()), b = t < block.range.steps ? beta[block.value_row() + t] : 0.0f;
    to[STEP_BETA * CHUNK + t] = b;
    to[STEP_FROM_START * CHUNK + t] = from_start;
    to[STEP_TO_END * CHUNK + t] = end.since(sum);
    to[STEP_KEY * CHUNK + t] = -b * from_start;
    to[STEP_QUERY * CHUNK + t] = scale * from_start;
  }
}

// invert computes T, where `below` has A. A thread has COLUMNS columns of T and computes their rows one after the
// other: row i is row i of −A, minus the sum of A_im times row m.
template <int CHUNK, int THREADS>
inline void invert(threadgroup const float* below, device float* inverse, uint index) {
  constexpr int COLUMNS = CHUNK > THREADS ? CHUNK / THREADS : 1;
  const int first = int(index) * COLUMNS;
  if (first >= CHUNK) {
    return;
  }
  for (int i = 0; i < CHUNK; i++) {
    float row[COLUMNS];
    for (int c = 0; c < COLUMNS; c++) {
      row[c] = first + c < i ? -below[i * CHUNK + first + c] : 0.0f;
    }
    for (int m = first + 1; m < i; m++) {
      const float a = below[i * CHUNK + m];
      for (int c = 0; c < COLUMNS; c++) {
        row[c] -= a * inverse[m * CHUNK + first + c];
      }
    }
    for (int c = 0; c < COLUMNS; c++) {
      inverse[i * CHUNK + first + c] = row[c];
    }
  }
}

template <int LANES, int SIMDGROUPS, int CHUNK, int HEAD_DIM, int HEAD_BLOCK>
[[kernel]] void gated_delta_chunks(
    device const float* q [[buffer(0)]],
    device const float* k [[buffer(1)]],
    device const float* log_decay [[buffer(2)]],
    device const float* beta [[buffer(3)]],
    device const int* starts [[buffer(4)]],
    device const int* size_values [[buffer(5)]],
    device const float* scalars [[buffer(6)]],
    device float* steps [[buffer(7)]],
    device float* scores [[buffer(8)]],
    device float* inverse [[buffer(9)]],
    device float* keys [[buffer(10)]],
    device float* key_scores [[buffer(11)]],
    uint3 group [[threadgroup_position_in_grid]],
    uint lane [[thread_index_in_simdgroup]],
    uint simdgroup [[simdgroup_index_in_threadgroup]]) {
  typedef DeltaChunk<LANES, SIMDGROUPS, CHUNK, HEAD_DIM, HEAD_DIM, HEAD_BLOCK, HEAD_BLOCK> Block;
  threadgroup float memory[Block::HEADS_MEMORY];
  threadgroup float below[CHUNK * CHUNK];
  Block block = {};
  block.init(size_values, group, lane, simdgroup);
  block.range = chunk_range<CHUNK>(block.sizes, starts, group.x);
  if (block.range.steps <= 0) {
    return;
  }
  const float scale = scalars[0];
  write_steps<CHUNK>(block, log_decay, beta, scale, steps);

  const typename Block::Heads rows = {k + block.key_row() * HEAD_DIM, block.range.steps};
  const size_t first = (block.key_row() + block.first_row) * HEAD_DIM;
  const int own = block.range.steps - block.first_row;
  typename Block::Scores products;
  fill(products, 0);
  add_transposed_product<HEAD_BLOCK>(products, q + first, own, rows, memory, block.team);
  block.template decay_scores<false>(products, steps, scale);
  const size_t square = block.slot() * (CHUNK * CHUNK);
  store(products, scores + square + block.first_row * CHUNK, CHUNK, Block::ROWS, block.team.lane);

  fill(products, 0);
  add_transposed_product<HEAD_BLOCK>(products, k + first, own, rows, memory, block.team);
  block.template decay_scores<true>(products, steps, 1);
  scale_rows(products, block.field(steps, STEP_BETA) + block.first_row, block.team.lane);
  store(products, key_scores + square + block.first_row * CHUNK, CHUNK, Block::ROWS, block.team.lane);
  for (int i = 0; i < products.LANE_ROWS; i++) {
    for (int j = 0; j < products.LANE_COLUMNS; j++) {
      const int row = block.first_row + products.row(i, block.team.lane);
      const int column = products.column(j, block.team.lane);
      if (column < row) {
        below[row * CHUNK + column] = products.get(i, j);
      }
    }
  }
  Block::TEAM::synchronize();
  invert<CHUNK, Block::TEAM::THREADS>(below, inverse + square, block.team.index());

  const typename Block::ScaledRows left = {inverse + square, CHUNK, CHUNK, CHUNK, block.field(steps, STEP_KEY)};
  for (int column = 0; column < HEAD_DIM; column += HEAD_BLOCK) {
    typename Block::HeadTile tile;
    fill(tile, 0);
    const typename Block::Heads right = {rows.elements + column, rows.rows};
    add_product<Block::STEP_TERMS>(tile, left, block.first_row, right, memory, block.team);
    add_rows(
        tile, block.field(steps, STEP_KEY) + block.first_row, block.head_rows(k), block.first_row, column,
        block.team.lane);
    store(
        tile, keys + (block.slot() * CHUNK + block.first_row) * HEAD_DIM + column, HEAD_DIM, Block::ROWS,
        block.team.lane);
  }
}

template <int LANES, int SIMDGROUPS, int CHUNK, int HEAD_DIM, int VALUE_DIM, int HEAD_BLOCK, int VALUE_BLOCK>
[[kernel]] void gated_delta_states(
    device const float* k [[buffer(0)]],
    device const float* v [[buffer(1)]],
    device const float* steps [[buffer(2)]],
    device const float* inverse [[buffer(3)]],
    device const float* keys [[buffer(4)]],
    device const float* initial [[buffer(5)]],
    device const int* starts [[buffer(6)]],
    device const int* size_values [[buffer(7)]],
    device float* updates [[buffer(8)]],
    device float* states [[buffer(9)]],
    device float* final_state [[buffer(10)]],
    uint3 group [[threadgroup_position_in_grid]],
    uint lane [[thread_index_in_simdgroup]],
    uint simdgroup [[simdgroup_index_in_threadgroup]]) {
  typedef DeltaChunk<LANES, SIMDGROUPS, CHUNK, HEAD_DIM, VALUE_DIM, HEAD_BLOCK, VALUE_BLOCK> Block;
  threadgroup float memory[Block::STATE_MEMORY];
  Block block = {};
  block.init(size_values, group, lane, simdgroup);
  StateWalk<Block, CHUNK, VALUE_DIM, VALUE_BLOCK> walk;
  walk.init(block, starts, group.x);
  block.copy_state(initial + walk.outer_state * Block::STATE_SIZE + walk.column, walk.state(states, final_state, 0));
  for (int i = 0; i < walk.chunks; i++) {
    block.range = walk.chunk(i);
    device float* const state = walk.state(states, final_state, i);
    const typename Block::Rows of_state = {
        keys + block.slot() * (CHUNK * HEAD_DIM), HEAD_DIM, CHUNK, HEAD_DIM, nullptr};
    const typename Block::ScaledRows of_values = {
        block.square(inverse), CHUNK, CHUNK, CHUNK, block.field(steps, STEP_BETA)};
    const typename Block::Values values = {v + block.value_row() * VALUE_DIM + walk.column, block.range.steps};
    device float* const update = updates + block.slot() * (CHUNK * VALUE_DIM) + walk.column;
    typename Block::ValueTile tile;
    fill(tile, 0);
    add_product<Block::HEAD_TERMS>(
        tile, of_state, block.first_row, typename Block::Values{state, HEAD_DIM}, memory, block.team);
    add_product<Block::STEP_TERMS>(tile, of_values, block.first_row, values, memory, block.team);
    const typename Block::Rows value_rows = {values.elements, VALUE_DIM, values.rows, VALUE_BLOCK, nullptr};
    add_rows(tile, block.field(steps, STEP_BETA) + block.first_row, value_rows, block.first_row, 0, block.team.lane);
    store(tile, update + block.first_row * VALUE_DIM, VALUE_DIM, Block::ROWS, block.team.lane);

    const typename Block::ScaledColumns written = {
        k + block.key_row() * HEAD_DIM, HEAD_DIM, block.range.steps, HEAD_DIM, block.field(steps, STEP_TO_END)};
    const float decay = block.field(steps, STEP_FROM_START)[CHUNK - 1];
    for (int row = block.first_row; row < block.first_row + HEAD_DIM; row += CHUNK) {
      block.load_state(tile, state, row);
      multiply(tile, decay);
      add_product<Block::STEP_TERMS>(
          tile, written, row, typename Block::Values{update, block.range.steps}, memory, block.team);
      block.store_state(tile, walk.state(states, final_state, i + 1), row);
    }
  }
}

template <int LANES, int SIMDGROUPS, int CHUNK, int HEAD_DIM, int VALUE_DIM, int HEAD_BLOCK, int VALUE_BLOCK>
[[kernel]] void gated_delta_output(
    device const float* q [[buffer(0)]],
    device const float* steps [[buffer(1)]],
    device const float* scores [[buffer(2)]],
    device const float* updates [[buffer(3)]],
    device const float* states [[buffer(4)]],
    device const int* starts [[buffer(5)]],
    device const int* size_values [[buffer(6)]],
    device float* o [[buffer(7)]],
    uint3 group [[threadgroup_position_in_grid]],
    uint lane [[thread_index_in_simdgroup]],
    uint simdgroup [[simdgroup_index_in_threadgroup]]) {
  typedef DeltaChunk<LANES, SIMDGROUPS, CHUNK, HEAD_DIM, VALUE_DIM, HEAD_BLOCK, VALUE_BLOCK> Block;
  threadgroup float memory[Block::STATE_MEMORY];
  Block block = {};
  block.init(size_values, group, lane, simdgroup);
  const int blocks = VALUE_DIM / VALUE_BLOCK;
  const int column = int(group.x) % blocks * VALUE_BLOCK;
  block.range = chunk_range<CHUNK>(block.sizes, starts, int(group.x) / blocks);
  if (block.range.steps <= 0) {
    return;
  }
  const typename Block::Rows of_updates = {block.square(scores), CHUNK, CHUNK, CHUNK, nullptr};
  const typename Block::Values state = {states + block.slot() * Block::STATE_SIZE + column, HEAD_DIM};
  const typename Block::Values values = {updates + block.slot() * (CHUNK * VALUE_DIM) + column, block.range.steps};
  typename Block::ValueTile tile;
  fill(tile, 0);
  add_product<Block::HEAD_TERMS>(tile, block.head_rows(q), block.first_row, state, memory, block.team);
  scale_rows(tile, block.field(steps, STEP_QUERY) + block.first_row, block.team.lane);
  add_product<Block::STEP_TERMS>(tile, of_updates, block.first_row, values, memory, block.team);
  store(
      tile, o + (block.value_row() + block.first_row) * VALUE_DIM + column, VALUE_DIM,
      block.range.steps - block.first_row, block.team.lane);
}
