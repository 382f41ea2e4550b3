// The gradients of x, B and C of a state-space model. ssm.h has the formulas and parameters.
//
//   kernel            computes                    a simdgroup owns   and iterates over
//   ssm_dx            dx, x·u, x·dy, dt·x·G·B     BLOCK_M steps      the chunk's later steps
//   ssm_db            dB                          BLOCK_M steps      heads, and the chunk's later steps
//   ssm_dc            dC, dy·S·C                  BLOCK_M steps      heads, and the chunk's earlier steps
//   ssm_decay_terms   parts of da                 BLOCK_M steps i    the chunk's earlier steps j
//
// Launch: the position of a threadgroup along x is the index of its block of BLOCK_M · SIMDGROUPS steps among the
// blocks of all slots. Along y it is the head, or for ssm_db and ssm_dc the group and part: each of the parts has as
// many of the group's heads, and its own sum, [parts, rows, GROUPS, N]. column_sum adds the parts.
//
// Device traffic: the rows of a block and the states of chunks once, and two arrays of the chunk's other steps once for
// each block.

#include "ssm.h"

// prefix_sums replaces each element by the sum of the elements before it in its row, beginning with `before`, to which
// it adds the row's sum.
template <int LANES, int ROWS, int COLUMNS>
inline void prefix_sums(thread Tile<LANES, ROWS, COLUMNS>& tile, thread float* before, uint lane) {
  for (int i = 0; i < tile.LANE_ROWS; i++) {
    for (int j = 0; j < tile.LANE_COLUMNS; j += 2) {  // a lane has two neighboring columns of each eight
      const float value = tile.get(i, j), two = value + tile.get(i, j + 1);
      const float other_two = simd_shuffle_xor(two, tile.SAME_ROW_BIT_0), four = two + other_two;
      const float other_four = simd_shuffle_xor(four, tile.SAME_ROW_BIT_1);
      const float sum =
          before[i] + ((lane & tile.SAME_ROW_BIT_1 ? other_four : 0) + (lane & tile.SAME_ROW_BIT_0 ? other_two : 0));
      tile.set(i, j, sum);
      tile.set(i, j + 1, sum + value);
      before[i] += four + other_four;
    }
  }
}

template <int ROWS, int COLUMNS>
inline void prefix_sums(thread Tile<1, ROWS, COLUMNS>& tile, thread float* before, uint) {
  for (int i = 0; i < ROWS; i++) {
    for (int j = 0; j < COLUMNS; j++) {
      const float value = tile.elements[i][j];
      tile.elements[i][j] = before[i];
      before[i] += value;
    }
  }
}

// add_decays writes the terms of da_t for the steps t at `column`: the sums over the block's rows i ≥ t and over j < t
// of s_ij · products_ij.
template <typename BLOCK, typename SCORES>
inline void add_decays(
    thread SCORES& s,
    thread SCORES& products,
    thread float* before,
    thread const BLOCK& block,
    int column,
    device float* to) {
  for (int i = 0; i < SCORES::LANE_ROWS; i++) {
    for (int j = 0; j < SCORES::LANE_COLUMNS; j++) {
      s.set(i, j, s.get(i, j) * products.get(i, j));
    }
  }
  prefix_sums(s, before, block.lane);
  for (int i = 0; i < SCORES::LANE_ROWS; i++) {
    const int r = SCORES::row(i, block.lane), at = block.first + r - column;
    for (int j = 0; j < SCORES::LANE_COLUMNS; j++) {
      s.set(i, j, SCORES::column(j, block.lane) <= at && r < block.rows ? s.get(i, j) : 0.0f);
    }
  }
  float sums[SCORES::LANE_COLUMNS];
  column_sum(s, sums);
  for (int j = 0; j < SCORES::LANE_COLUMNS; j++) {
    const int c = SCORES::column(j, block.lane);
    // One of the lanes that share the column writes.
    if (SCORES::row(0, block.lane) == 0 && column + c < block.chunk.rows && column + c < block.first + BLOCK::ROWS) {
      to[c] = sums[j];
    }
  }
}

template <
    typename T,
    int LANES,
    int SIMDGROUPS,
    int BLOCK_M,
    int BLOCK_N,
    int CHUNK,
    int HEADS,
    int GROUPS,
    int HEAD_DIM,
    int STATE_DIM>
[[kernel]] void ssm_dx(
    device const T* x [[buffer(0)]],
    device const T* b [[buffer(1)]],
    device const T* c [[buffer(2)]],
    device const float* d [[buffer(3)]],
    device const T* dy [[buffer(4)]],
    device const float* d_states [[buffer(5)]],
    device const float* decays [[buffer(6)]],
    device const int* starts [[buffer(7)]],
    device const int* size_values [[buffer(8)]],
    device T* dx [[buffer(9)]],
    device float* terms [[buffer(10)]],
    uint3 group [[threadgroup_position_in_grid]],
    uint lane [[thread_index_in_simdgroup]],
    uint simdgroup [[simdgroup_index_in_threadgroup]]) {
  constexpr int X_STRIDE = HEADS * HEAD_DIM, B_STRIDE = GROUPS * STATE_DIM;
  typedef ChunkProduct<true, T, LANES, SIMDGROUPS, BLOCK_M, BLOCK_N, CHUNK, STATE_DIM, B_STRIDE, HEAD_DIM, X_STRIDE>
      Product;
  typedef typename Product::Sum Sum;
  threadgroup T right_memory[Product::RightPanel::SIZE];
  threadgroup T value_memory[Product::ValuePanel::SIZE];
  threadgroup float state_memory[Product::StatePanel::SIZE];
  Product product = {};
  if (!product.begin(size_values, starts, group.x, lane, simdgroup)) {
    return;
  }
  const int head = group.y;
  product.load_decays(decays, head);
  const int in_x = head * HEAD_DIM, in_b = head / (HEADS / GROUPS) * STATE_DIM;
  const size_t first = product.chunk.first, own = product.row * X_STRIDE + in_x;
  device const T* const left = b + product.row * B_STRIDE + in_b;
  float steps[Sum::LANE_ROWS], factors[Sum::LANE_ROWS];
  for (int i = 0; i < Sum::LANE_ROWS; i++) {
    steps[i] = product.row_decays[i].dt;
    factors[i] = d[head];
  }
  Sum sum;
  fill(sum, 0);
  product.add_state(sum, left, d_states + (size_t(product.slot) * HEADS + head) * (STATE_DIM * HEAD_DIM), state_memory);
  float of_state[Sum::LANE_ROWS], x_u[Sum::LANE_ROWS], x_dy[Sum::LANE_ROWS];
  Sum copy = sum;
  dot_rows(copy, x + own, X_STRIDE, product.rows, of_state, product.lane);
  product.add_steps(sum, left, c + first * B_STRIDE + in_b, dy + first * X_STRIDE + in_x, right_memory, value_memory);
  copy = sum;
  dot_rows(copy, x + own, X_STRIDE, product.rows, x_u, product.lane);
  multiply_rows(sum, steps);
  add_rows(sum, dy + own, X_STRIDE, product.rows, factors, product.lane);
  store(sum, dx + own, X_STRIDE, product.rows, product.lane);
  load_rows<true>(sum, dy + own, X_STRIDE, product.rows, HEAD_DIM, product.lane);
  dot_rows(sum, x + own, X_STRIDE, product.rows, x_dy, product.lane);
  for (int i = 0; i < Sum::LANE_ROWS; i++) {
    const int r = Sum::row(i, product.lane);
    // One of the lanes that share the row writes.
    if (r < product.rows && Sum::column(0, product.lane) == 0) {
      const Vec<float, 4> values = {{x_u[i], x_dy[i], steps[i] * of_state[i], 0}};
      reinterpret_cast<device Vec<float, 4>*>(terms)[step_count(product.sizes) * head + product.row + r] = values;
    }
  }
}

template <
    typename T,
    int LANES,
    int SIMDGROUPS,
    int BLOCK_M,
    int BLOCK_N,
    int CHUNK,
    int HEADS,
    int GROUPS,
    int HEAD_DIM,
    int STATE_DIM>
[[kernel]] void ssm_db(
    device const T* x [[buffer(0)]],
    device const T* c [[buffer(1)]],
    device const T* dy [[buffer(2)]],
    device const float* d_states [[buffer(3)]],
    device const float* decays [[buffer(4)]],
    device const int* starts [[buffer(5)]],
    device const int* size_values [[buffer(6)]],
    device float* db_parts [[buffer(7)]],
    uint3 group [[threadgroup_position_in_grid]],
    uint3 groups [[threadgroups_per_grid]],
    uint lane [[thread_index_in_simdgroup]],
    uint simdgroup [[simdgroup_index_in_threadgroup]]) {
  constexpr int X_STRIDE = HEADS * HEAD_DIM, B_STRIDE = GROUPS * STATE_DIM;
  typedef ChunkProduct<true, T, LANES, SIMDGROUPS, BLOCK_M, BLOCK_N, CHUNK, HEAD_DIM, X_STRIDE, STATE_DIM, B_STRIDE>
      Product;
  typedef typename Product::Sum Sum;
  threadgroup T right_memory[Product::RightPanel::SIZE];
  threadgroup T value_memory[Product::ValuePanel::SIZE];
  threadgroup float state_memory[Product::StatePanel::SIZE];
  Product product = {};
  if (!product.begin(size_values, starts, group.x, lane, simdgroup)) {
    return;
  }
  const int parts = groups.y / GROUPS, of_group = group.y / parts, part = group.y % parts;
  const int heads = HEADS / GROUPS / parts, first_head = of_group * (HEADS / GROUPS) + part * heads;
  const size_t first = product.chunk.first;
  Sum total;
  fill(total, 0);
  for (int head = first_head; head < first_head + heads; head++) {
    product.load_decays(decays, head);
    device const T* const left = x + product.row * X_STRIDE + head * HEAD_DIM;
    Sum sum;
    fill(sum, 0);
    product.add_state(
        sum, left, d_states + (size_t(product.slot) * HEADS + head) * (STATE_DIM * HEAD_DIM), state_memory);
    product.add_steps(
        sum, left, dy + first * X_STRIDE + head * HEAD_DIM, c + first * B_STRIDE + of_group * STATE_DIM, right_memory,
        value_memory);
    for (int i = 0; i < Sum::LANE_ROWS; i++) {
      for (int j = 0; j < Sum::LANE_COLUMNS; j++) {
        total.set(i, j, total.get(i, j) + product.row_decays[i].dt * sum.get(i, j));
      }
    }
  }
  const size_t at = (step_count(product.sizes) * part + product.row) * B_STRIDE + of_group * STATE_DIM;
  store(total, db_parts + at, B_STRIDE, product.rows, product.lane);
}

// output_terms has exp(b_t)·dy_t·S·C_t.
template <
    typename T,
    int LANES,
    int SIMDGROUPS,
    int BLOCK_M,
    int BLOCK_N,
    int CHUNK,
    int HEADS,
    int GROUPS,
    int HEAD_DIM,
    int STATE_DIM>
[[kernel]] void ssm_dc(
    device const T* x [[buffer(0)]],
    device const T* b [[buffer(1)]],
    device const T* c [[buffer(2)]],
    device const T* dy [[buffer(3)]],
    device const float* states [[buffer(4)]],
    device const float* decays [[buffer(5)]],
    device const int* starts [[buffer(6)]],
    device const int* size_values [[buffer(7)]],
    device float* dc_parts [[buffer(8)]],
    device float* output_terms [[buffer(9)]],
    uint3 group [[threadgroup_position_in_grid]],
    uint3 groups [[threadgroups_per_grid]],
    uint lane [[thread_index_in_simdgroup]],
    uint simdgroup [[simdgroup_index_in_threadgroup]]) {
  constexpr int X_STRIDE = HEADS * HEAD_DIM, B_STRIDE = GROUPS * STATE_DIM;
  typedef ChunkProduct<false, T, LANES, SIMDGROUPS, BLOCK_M, BLOCK_N, CHUNK, HEAD_DIM, X_STRIDE, STATE_DIM, B_STRIDE>
      Product;
  typedef typename Product::Sum Sum;
  threadgroup T right_memory[Product::RightPanel::SIZE];
  threadgroup T value_memory[Product::ValuePanel::SIZE];
  threadgroup float state_memory[Product::StatePanel::SIZE];
  Product product = {};
  if (!product.begin(size_values, starts, group.x, lane, simdgroup)) {
    return;
  }
  const int parts = groups.y / GROUPS, of_group = group.y / parts, part = group.y % parts;
  const int heads = HEADS / GROUPS / parts, first_head = of_group * (HEADS / GROUPS) + part * heads;
  const size_t first = product.chunk.first, own = product.row * B_STRIDE + of_group * STATE_DIM;
  Sum total;
  fill(total, 0);
  for (int head = first_head; head < first_head + heads; head++) {
    product.load_decays(decays, head);
    device const T* const left = dy + product.row * X_STRIDE + head * HEAD_DIM;
    Sum sum;
    fill(sum, 0);
    product.add_state(sum, left, states + (size_t(product.slot) * HEADS + head) * (STATE_DIM * HEAD_DIM), state_memory);
    for (int i = 0; i < Sum::LANE_ROWS; i++) {
      for (int j = 0; j < Sum::LANE_COLUMNS; j++) {
        total.set(i, j, total.get(i, j) + sum.get(i, j));
      }
    }
    float output[Sum::LANE_ROWS];
    dot_rows(sum, c + own, B_STRIDE, product.rows, output, product.lane);
    for (int i = 0; i < Sum::LANE_ROWS; i++) {
      const int r = Sum::row(i, product.lane);
      // One of the lanes that share the row writes.
      if (r < product.rows && Sum::column(0, product.lane) == 0) {
        output_terms[step_count(product.sizes) * head + product.row + r] = output[i];
      }
    }
    product.add_steps(
        total, left, x + first * X_STRIDE + head * HEAD_DIM, b + first * B_STRIDE + of_group * STATE_DIM, right_memory,
        value_memory);
  }
  store(total, dc_parts + step_count(product.sizes) * part * B_STRIDE + own, B_STRIDE, product.rows, product.lane);
}

// decay_parts has, for each block of BLOCK_M steps i of a chunk, the terms of da_t for all t up to the block's last
// step: [CHUNK / BLOCK_M, HEADS, rows]. Other elements are undefined.
template <
    typename T,
    int LANES,
    int SIMDGROUPS,
    int BLOCK_M,
    int BLOCK_N,
    int CHUNK,
    int HEADS,
    int GROUPS,
    int HEAD_DIM,
    int STATE_DIM>
[[kernel]] void ssm_decay_terms(
    device const T* x [[buffer(0)]],
    device const T* b [[buffer(1)]],
    device const T* c [[buffer(2)]],
    device const T* dy [[buffer(3)]],
    device const float* decays [[buffer(4)]],
    device const int* starts [[buffer(5)]],
    device const int* size_values [[buffer(6)]],
    device float* decay_parts [[buffer(7)]],
    uint3 group [[threadgroup_position_in_grid]],
    uint lane [[thread_index_in_simdgroup]],
    uint simdgroup [[simdgroup_index_in_threadgroup]]) {
  constexpr int X_STRIDE = HEADS * HEAD_DIM, B_STRIDE = GROUPS * STATE_DIM;
  typedef ChunkBlock<LANES, SIMDGROUPS, BLOCK_M, BLOCK_N, CHUNK> Block;
  typedef typename Block::Scores Scores;
  typedef Panel<LANES, T, BLOCK_N, HEAD_DIM, X_STRIDE> XPanel;
  typedef Panel<LANES, T, BLOCK_N, STATE_DIM, B_STRIDE> BPanel;
  threadgroup T x_memory[XPanel::SIZE];
  threadgroup T b_memory[BPanel::SIZE];
  Block block = {};
  if (!block.begin(size_values, starts, group.x, lane, simdgroup)) {
    return;
  }
  const int head = group.y;
  block.load_decays(decays, head);
  const int in_x = head * HEAD_DIM, in_b = head / (HEADS / GROUPS) * STATE_DIM;
  x += block.chunk.first * X_STRIDE + in_x;
  b += block.chunk.first * B_STRIDE + in_b;
  Operand<LANES, T, BLOCK_M, STATE_DIM> outputs;
  Operand<LANES, T, BLOCK_M, HEAD_DIM> cotangents;
  outputs.load(c + block.row * B_STRIDE + in_b, B_STRIDE, block.rows, block.lane);
  cotangents.load(dy + block.row * X_STRIDE + in_x, X_STRIDE, block.rows, block.lane);
  const int end = min(block.group_first + Block::GROUP_ROWS, block.chunk.rows);
  const size_t of_block = step_count(block.sizes) * (size_t(block.first / BLOCK_M) * HEADS + head) + block.chunk.first;
  XPanel x_panel;
  BPanel b_panel;
  x_panel.init(x_memory, x, end, block.thread_index, Block::THREADS);
  b_panel.init(b_memory, b, end, block.thread_index, Block::THREADS);
  float before[Scores::LANE_ROWS] = {};  // of each row, the terms of the columns before the panel
  for (int column = 0; column < end; column += BLOCK_N) {
    const int next = column + BLOCK_N;
    acquire(b_panel, x_panel);
    x_panel.advance(x + size_t(next) * X_STRIDE, end - next, block.thread_index, Block::THREADS);
    b_panel.advance(b + size_t(next) * B_STRIDE, end - next, block.thread_index, Block::THREADS);
    commit(b_panel, x_panel);
    if (block.rows > 0 && column < block.first + BLOCK_M) {
      Scores s, products;
      multiply_transposed(s, outputs, b_panel, block.lane);
      multiply_transposed(products, cotangents, x_panel, block.lane);
      finish<0>(products);
      block.template weigh<false, true>(s, column);
      add_decays(s, products, before, block, column, decay_parts + of_block + column);
    }
  }
}
