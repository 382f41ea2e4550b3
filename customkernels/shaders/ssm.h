// A selective state-space model, forward and backward, in chunks of CHUNK steps. Reference: compare/oracle/ssmscan.go.
//
// For each head, with its group's rows B_t and C_t of N elements, rows x_t of P elements, and a state h of P × N
// (Dao and Gu, "Transformers are SSMs", 2024, section 6):
//
//   a_t = dt_t·A
//   h_t = exp(a_t)·h_{t−1} + dt_t·x_t·B_tᵀ
//   y_t = h_t·C_t + D·x_t
//
// Let S be the state at the start of a chunk, b_t the sum of a from the chunk's first step to step t, and b_end the sum
// at its last step. L_tj = exp(b_t − b_j) for j ≤ t, otherwise 0. Within the chunk:
//
//   y_t   = exp(b_t)·S·C_t + Σ_j L_tj·dt_j·(C_t·B_j)·x_j + D·x_t
//   S_end = exp(b_end)·S + Σ_j exp(b_end − b_j)·dt_j·x_j·B_jᵀ
//
// With G the gradient of S_end:
//
//   dS    = exp(b_end)·G + Σ_t exp(b_t)·dy_t·C_tᵀ
//   u_j   = exp(b_end − b_j)·G·B_j + Σ_t L_tj·(C_t·B_j)·dy_t
//   dx_j  = dt_j·u_j + D·dy_j
//   dB_j  = dt_j·(exp(b_end − b_j)·Gᵀ·x_j + Σ_t L_tj·(dy_t·x_j)·C_t)
//   dC_t  = exp(b_t)·Sᵀ·dy_t + Σ_j L_tj·dt_j·(dy_t·x_j)·B_j
//   ddt_t = x_t·u_t + A·da_t,  dA = Σ dt_t·da_t,  dD = Σ x_t·dy_t
//
// and da_t is the sum of all terms of the loss that decay at step t, from before t to t or after it:
//
//   da_t  = exp(b_end)·⟨G, S⟩ + Σ_{i≥t} exp(b_i)·dy_i·S·C_i + Σ_{j<t} exp(b_end − b_j)·dt_j·x_j·G·B_j
//           + Σ_{i≥t} Σ_{j<t} L_ij·dt_j·(C_i·B_j)·(dy_i·x_j)
//
// A running sum of dy_t·(y_t − D·x_t) − dt_t·x_t·u_t has the same value with fewer operations. But its terms cancel,
// and their rounding errors do not: after a strong decay da_t would be only rounding, and dt_t, a factor of it in dA,
// large.
//
//   file                kernel               computes
//   ssm_decay.metal     ssm_step_decays      the StepDecay of each step
//                       ssm_decay_backward   ddt, and the terms of dA and dD of each chunk
//   ssm_states.metal    ssm_states           S of each chunk and the final state, chunk after chunk
//                       ssm_state_gradients  G of each chunk and the gradient of the initial state, and ⟨G, S⟩
//   ssm_output.metal    ssm_output           y
//   ssm_backward.metal  ssm_dx               dx, x·u, x·dy and dt·x·G·B
//                       ssm_db, ssm_dc       dB and dC, in float, of a part of a group's heads; dy·S·C
//                       ssm_decay_terms      the last sum of da, in parts
//
// Sums have a fixed order, so results have the same bits in every run. Arithmetic is float for every T. A device whose
// matrix unit requires operands of type T rounds them to T for products (tiles.h).
//
//   parameter            meaning                                   constraint
//   T                    dtype of x, B, C, y and their gradients   float, half, bfloat
//   LANES                lanes of a simdgroup                      1, 32
//   SIMDGROUPS           simdgroups of a threadgroup               threadgroup size LANES · SIMDGROUPS
//   BLOCK_M              rows of a simdgroup                       multiple of 8; device tiles: of 16
//   BLOCK_N              rows of a panel                           multiple of 8; device tiles: of 16
//   CHUNK                steps of a chunk                          multiple of BLOCK_N and of BLOCK_M · SIMDGROUPS
//   HEADS, GROUPS        heads of x, groups of B and C             HEADS a multiple of GROUPS
//   HEAD_DIM, STATE_DIM  P and N                                   multiples of 8
//
// Layouts: x, y [rows, HEADS, P], B and C [rows, GROUPS, N], StepDecays and other floats of steps [HEADS, rows, …],
// where rows are the steps of all batches. States of chunks are [slots, HEADS, N, P], states of sequences
// [sequences, HEADS, N, P].

#include "tiles.h"

#include "ssm_steps.h"

// load_rows loads the first `rows` rows and `columns` columns. Other elements are zero. If WHOLE, `columns` is at least
// COLUMNS.
template <bool WHOLE, int LANES, int ROWS, int COLUMNS, typename T>
inline void load_rows(
    thread Tile<LANES, ROWS, COLUMNS>& tile, device const T* from, int stride, int rows, int columns, uint lane) {
  for (int i = 0; i < tile.LANE_ROWS; i++) {
    const int row = tile.row(i, lane);
    device const T* const p = from + size_t(row) * stride;
    for (int j = 0; j < tile.LANE_COLUMNS; j++) {
      const int column = tile.column(j, lane);
      tile.set(i, j, row < rows && (WHOLE || column < columns) ? float(p[column]) : 0.0f);
    }
  }
}

// add_rows adds rows, each multiplied by its factor. Rows at or beyond `rows` stay as they are.
template <int LANES, int ROWS, int COLUMNS, typename T>
inline void add_rows(
    thread Tile<LANES, ROWS, COLUMNS>& sum,
    device const T* from,
    int stride,
    int rows,
    thread const float* factors,
    uint lane) {
  for (int i = 0; i < sum.LANE_ROWS; i++) {
    const int row = sum.row(i, lane);
    device const T* const p = from + size_t(row) * stride;
    if (row < rows) {
      for (int j = 0; j < sum.LANE_COLUMNS; j++) {
        sum.set(i, j, sum.get(i, j) + factors[i] * float(p[sum.column(j, lane)]));
      }
    }
  }
}

// dot_rows computes the product of each row of a tile with a row in memory. It overwrites the tile.
template <int LANES, int ROWS, int COLUMNS, typename T>
inline void dot_rows(
    thread Tile<LANES, ROWS, COLUMNS>& tile,
    device const T* from,
    int stride,
    int rows,
    thread float* products,
    uint lane) {
  for (int i = 0; i < tile.LANE_ROWS; i++) {
    const int row = tile.row(i, lane);
    device const T* const p = from + size_t(row) * stride;
    for (int j = 0; j < tile.LANE_COLUMNS; j++) {
      tile.set(i, j, row < rows ? tile.get(i, j) * float(p[tile.column(j, lane)]) : 0.0f);
    }
  }
  row_sum(tile, products);
}

// A ChunkBlock is the work of one simdgroup: BLOCK_M rows of a chunk, and one head at a time.
template <int LANES, int SIMDGROUPS, int BLOCK_M, int BLOCK_N, int CHUNK>
struct ChunkBlock {
  static constexpr constant int ROWS = BLOCK_M, GROUP_ROWS = BLOCK_M * SIMDGROUPS;
  static constexpr constant int BLOCKS = CHUNK / GROUP_ROWS;  // threadgroups of a chunk
  static constexpr constant int THREADS = LANES * SIMDGROUPS;
  typedef Tile<LANES, BLOCK_M, BLOCK_N> Scores;

  ChunkSizes sizes;
  StepChunk chunk;
  int slot;
  int group_first, first;  // positions of the threadgroup's and the simdgroup's first row in the chunk
  int rows;                // rows of the chunk from `first` on; 0 or less if the simdgroup has none
  size_t row;              // index of row `first`
  uint lane, thread_index;
  device const float* decays;  // of the chunk, for the current head
  StepDecay row_decays[Scores::LANE_ROWS];

  // begin finds the simdgroup's rows. `group` numbers the threadgroups of all slots. begin reports whether the
  // threadgroup has any rows.
  bool begin(device const int* size_values, device const int* starts, uint group, uint lane_index, uint simdgroup) {
    lane = lane_index;
    thread_index = simdgroup * LANES + lane;
    sizes = load_chunk_sizes(size_values);
    slot = group / BLOCKS;
    chunk = step_chunk<CHUNK>(sizes, starts, slot);
    group_first = int(group % BLOCKS) * GROUP_ROWS;
    first = group_first + int(simdgroup) * BLOCK_M;
    rows = chunk.rows - first;
    row = chunk.first + first;
    return group_first < chunk.rows;
  }

  // load_decays selects a head.
  void load_decays(device const float* of_rows, int head) {
    decays = of_rows + (step_count(sizes) * head + chunk.first) * STEP_DECAY_SIZE;
    for (int i = 0; i < Scores::LANE_ROWS; i++) {
      row_decays[i] = decay_at(first + Scores::row(i, lane));
    }
  }

  // decay_at returns the StepDecay of a row of the chunk. For rows beyond the last it is the last row's.
  StepDecay decay_at(int r) const { return load_step_decay(decays, min(r, chunk.rows - 1)); }

  // weigh multiplies the products of the simdgroup's rows r with the rows c at `column` by decay_rc (ChunkProduct). The
  // terms c = r become 0 if STRICT.
  template <bool REVERSED, bool STRICT>
  void weigh(thread Scores& products, int column) const {
    float high[Scores::LANE_COLUMNS], low[Scores::LANE_COLUMNS], factors[Scores::LANE_COLUMNS];
    for (int j = 0; j < Scores::LANE_COLUMNS; j++) {
      const StepDecay d = decay_at(column + Scores::column(j, lane));
      high[j] = d.sum.high;
      low[j] = d.sum.low;
      factors[j] = REVERSED ? 1.0f : d.dt;
    }
    for (int i = 0; i < Scores::LANE_ROWS; i++) {
      const StepDecay d = row_decays[i];
      const int r = first + Scores::row(i, lane) - column;
      for (int j = 0; j < Scores::LANE_COLUMNS; j++) {
        const int c = Scores::column(j, lane);
        const bool is_summed = REVERSED ? c >= r + STRICT && c < chunk.rows - column : c <= r - STRICT;
        const DecaySum of_column = {high[j], low[j]};
        const float decay = REVERSED ? of_column.since(d.sum) : d.sum.since(of_column);
        products.set(i, j, is_summed ? products.get(i, j) * decay * factors[j] : 0.0f);
      }
    }
  }
};

// A ChunkProduct computes, for a simdgroup's rows of a chunk and one head,
//
//   factor_r·(left_r·state) + Σ_c decay_rc·(left_r·right_c)·values_c
//
// If REVERSED, the sum is over later rows c, decay_rc = exp(b_c − b_r) and factor_r = exp(b_end − b_r). Otherwise it is
// over earlier rows, decay_rc = exp(b_r − b_c)·dt_c and factor_r = exp(b_r). The sum includes c = r. left and right
// have INNER columns and rows that are INNER_STRIDE apart, values have OUTER columns and OUTER_STRIDE.
template <
    bool REVERSED,
    typename T,
    int LANES,
    int SIMDGROUPS,
    int BLOCK_M,
    int BLOCK_N,
    int CHUNK,
    int INNER,
    int INNER_STRIDE,
    int OUTER,
    int OUTER_STRIDE>
struct ChunkProduct : ChunkBlock<LANES, SIMDGROUPS, BLOCK_M, BLOCK_N, CHUNK> {
  typedef ChunkBlock<LANES, SIMDGROUPS, BLOCK_M, BLOCK_N, CHUNK> Block;
  typedef typename Block::Scores Scores;
  typedef Tile<LANES, BLOCK_M, OUTER> Sum;
  typedef Panel<LANES, T, BLOCK_N, INNER, INNER_STRIDE> RightPanel;
  typedef Panel<LANES, T, BLOCK_N, OUTER, OUTER_STRIDE> ValuePanel;
  typedef Panel<LANES, float, BLOCK_N, OUTER> StatePanel;

  // add_state adds the products with the state. `left` points to row `first` of its array. All threads of the
  // threadgroup call it.
  void add_state(thread Sum& sum, device const T* left, device const float* state, threadgroup float* memory) const {
    float factors[Scores::LANE_ROWS];
    for (int i = 0; i < Scores::LANE_ROWS; i++) {
      const StepDecay decay = this->row_decays[i];
      factors[i] = decay.from_start();
      if (REVERSED) {
        const StepDecay last = this->decay_at(CHUNK);
        factors[i] = last.sum.since(decay.sum);
      }
    }
    StatePanel panel;
    acquire(panel);
    panel.init(memory, state, INNER, this->thread_index, Block::THREADS);
    for (int column = 0; column < INNER; column += BLOCK_N) {
      const int next = column + BLOCK_N;
      acquire(panel);
      panel.advance(state + size_t(next) * OUTER, INNER - next, this->thread_index, Block::THREADS);
      commit(panel);
      Scores terms;
      load_rows<INNER % BLOCK_N == 0>(terms, left + column, INNER_STRIDE, this->rows, INNER - column, this->lane);
      multiply_rows(terms, factors);
      multiply_add(sum, terms, panel, this->lane);
      finish<0>(sum);
    }
  }

  // add_steps adds the products among the chunk's rows. `right` and `values` point to the chunk's first row. All
  // threads of the threadgroup call it.
  void add_steps(
      thread Sum& sum,
      device const T* left,
      device const T* right,
      device const T* values,
      threadgroup T* right_memory,
      threadgroup T* value_memory) const {
    Operand<LANES, T, BLOCK_M, INNER> operand;
    operand.load(left, INNER_STRIDE, this->rows, this->lane);
    const int begin = REVERSED ? this->group_first / BLOCK_N * BLOCK_N : 0;
    const int end = REVERSED ? this->chunk.rows : min(this->group_first + Block::GROUP_ROWS, this->chunk.rows);
    // Far rows, which the decay makes small, are added first.
    const int last = begin + (end - 1 - begin) / BLOCK_N * BLOCK_N;
    int next = REVERSED ? last : begin;
    RightPanel right_panel;
    ValuePanel value_panel;
    acquire(right_panel, value_panel);
    right_panel.init(right_memory, right + size_t(next) * INNER_STRIDE, end - next, this->thread_index, Block::THREADS);
    value_panel.init(
        value_memory, values + size_t(next) * OUTER_STRIDE, end - next, this->thread_index, Block::THREADS);
    for (int offset = 0; offset <= last - begin; offset += BLOCK_N) {
      const int column = next;
      next = REVERSED ? max(column - BLOCK_N, begin) : column + BLOCK_N;
      const int next_rows = next == column ? 0 : end - next;
      acquire(right_panel, value_panel);
      right_panel.advance(right + size_t(next) * INNER_STRIDE, next_rows, this->thread_index, Block::THREADS);
      value_panel.advance(values + size_t(next) * OUTER_STRIDE, next_rows, this->thread_index, Block::THREADS);
      commit(right_panel, value_panel);
      if (this->rows > 0 && (REVERSED ? column + BLOCK_N > this->first : column < this->first + BLOCK_M)) {
        Scores s;
        multiply_transposed(s, operand, right_panel, this->lane);
        finish<0>(s);
        this->template weigh<REVERSED, false>(s, column);
        multiply_add(sum, s, value_panel, this->lane);
        finish<0>(sum);
      }
    }
  }
};
