// The states of a state-space model at the chunks' ends, and their gradients. ssm.h has the formulas and parameters.
//
// A simdgroup owns BLOCK_M of the STATE_DIM rows of the transposed state of a head, and iterates over the steps of a
// sequence, or backwards over them. It keeps its rows in registers, so the states of chunks are written once and never
// read again.
//
// Launch: the position of a threadgroup is the block of BLOCK_M · SIMDGROUPS rows along x, the head along y, and the
// sequence or batch along z.
//
// Device traffic for each head, with one block of rows: the steps of two arrays and the states of all chunks, once;
// ssm_state_gradients also reads these states. Each further block reads P elements of each step again.

#include "ssm.h"

// StateRows are the rows of a simdgroup. `left` has STATE_DIM elements for each step, `right` has HEAD_DIM.
template <
    bool REVERSED,
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
struct StateRows {
  typedef Tile<LANES, BLOCK_M, HEAD_DIM> State;
  typedef Tile<LANES, BLOCK_M, BLOCK_N> Left;
  typedef Panel<LANES, T, BLOCK_N, HEAD_DIM, HEADS * HEAD_DIM> RightPanel;
  static constexpr constant int LEFT_STRIDE = GROUPS * STATE_DIM, RIGHT_STRIDE = HEADS * HEAD_DIM;
  static constexpr constant int THREADS = LANES * SIMDGROUPS;

  size_t first_step;
  int steps, first_slot, end_slot;  // of the sequence
  int first, rows;                  // the simdgroup's first row, and the number of rows from it on
  int head;
  size_t in_state;  // where the simdgroup's rows begin in the state of the sequence
  uint lane, thread_index;
  device const float* decays;  // of the sequence
  device const T* next;        // the source of the next panel
  RightPanel panel;

  void begin(
      device const int* size_values,
      device const int* starts,
      device const float* of_rows,
      device const T* right,
      threadgroup T* memory,
      uint3 group,
      uint lane_index,
      uint simdgroup) {
    const ChunkSizes sizes = load_chunk_sizes(size_values);
    const bool is_packed = sizes.sequences > 0;
    const int s = group.z, batch = is_packed ? 0 : s;
    lane = lane_index;
    thread_index = simdgroup * LANES + lane;
    head = group.y;
    const StepRange range = sequence_range<CHUNK>(sizes, starts, is_packed ? s : 0);
    steps = max(range.steps, 0);
    first_step = size_t(batch) * sizes.length + range.first;
    first_slot = batch * sizes.slots + range.slot;
    const bool is_last = !is_packed || s + 1 == sizes.sequences;
    end_slot = is_last ? (batch + 1) * sizes.slots : sequence_range<CHUNK>(sizes, starts, s + 1).slot;
    first = (int(group.x) * SIMDGROUPS + int(simdgroup)) * BLOCK_M;
    rows = STATE_DIM - first;
    in_state = (size_t(s) * HEADS + head) * (STATE_DIM * HEAD_DIM) + first * HEAD_DIM;
    decays = of_rows + (step_count(sizes) * head + first_step) * STEP_DECAY_SIZE;
    const int row = REVERSED ? max(panels() - 1, 0) * BLOCK_N : 0;
    next = right + (first_step + row) * RIGHT_STRIDE + head * HEAD_DIM;
    panel.init(memory, next, steps - row, thread_index, THREADS);
  }

  int panels() const { return (steps + BLOCK_N - 1) / BLOCK_N; }

  // in_chunk returns where the simdgroup's rows begin in the state of a chunk.
  size_t in_chunk(int chunk) const {
    return (size_t(first_slot + chunk) * HEADS + head) * (STATE_DIM * HEAD_DIM) + first * HEAD_DIM;
  }

  // end_of returns the StepDecay of a chunk's last step.
  StepDecay end_of(int chunk) const { return load_step_decay(decays, min((chunk + 1) * CHUNK, steps) - 1); }

  // advance makes the panel at step `row` the current one, and prefetches the next panel.
  void advance(int row) {
    const int after = REVERSED ? row - BLOCK_N : row + BLOCK_N;
    next = REVERSED ? next - (row > 0 ? BLOCK_N * RIGHT_STRIDE : 0) : next + BLOCK_N * RIGHT_STRIDE;
    acquire(panel);
    panel.advance(next, after < 0 ? 0 : steps - after, thread_index, THREADS);
    commit(panel);
  }

  // add adds the products of the steps of the current panel, which begins at `row`.
  void add(thread State& state, device const T* left, int row) const {
    const StepDecay end = end_of(row / CHUNK);
    Left terms;
    for (int j = 0; j < Left::LANE_COLUMNS; j++) {
      const int step = row + Left::column(j, lane);
      device const T* const from =
          left + (first_step + step) * LEFT_STRIDE + head / (HEADS / GROUPS) * STATE_DIM + first;
      const bool is_step = step < steps;
      const StepDecay decay = load_step_decay(decays, is_step ? step : 0);
      const float weight = REVERSED ? decay.from_start() : end.sum.since(decay.sum) * decay.dt;
      for (int i = 0; i < Left::LANE_ROWS; i++) {
        const int n = Left::row(i, lane);
        terms.set(i, j, is_step && n < rows ? float(from[n]) * weight : 0.0f);
      }
    }
    multiply_add(state, terms, panel, lane);
    finish<0>(state);
  }

  // clear sets the states of slots without rows to zero.
  void clear(device float* states) const {
    State zero;
    fill(zero, 0);
    for (int c = (steps + CHUNK - 1) / CHUNK; c < end_slot - first_slot; c++) {
      store(zero, states + in_chunk(c), HEAD_DIM, rows, lane);
    }
  }
};

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
[[kernel]] void ssm_states(
    device const T* x [[buffer(0)]],
    device const T* b [[buffer(1)]],
    device const float* initial [[buffer(2)]],
    device const float* decays [[buffer(3)]],
    device const int* starts [[buffer(4)]],
    device const int* size_values [[buffer(5)]],
    device float* states [[buffer(6)]],
    device float* final_states [[buffer(7)]],
    uint3 group [[threadgroup_position_in_grid]],
    uint lane [[thread_index_in_simdgroup]],
    uint simdgroup [[simdgroup_index_in_threadgroup]]) {
  typedef StateRows<false, T, LANES, SIMDGROUPS, BLOCK_M, BLOCK_N, CHUNK, HEADS, GROUPS, HEAD_DIM, STATE_DIM> Rows;
  threadgroup T memory[Rows::RightPanel::SIZE];
  Rows rows = {};
  rows.begin(size_values, starts, decays, x, memory, group, lane, simdgroup);
  typename Rows::State state;
  load_rows<true>(state, initial + rows.in_state, HEAD_DIM, rows.rows, HEAD_DIM, rows.lane);
  for (int i = 0; i < rows.panels(); i++) {
    const int row = i * BLOCK_N, chunk = row / CHUNK;
    rows.advance(row);
    if (row % CHUNK == 0) {
      store(state, states + rows.in_chunk(chunk), HEAD_DIM, rows.rows, rows.lane);
      const StepDecay end = rows.end_of(chunk);
      multiply(state, end.from_start());
    }
    rows.add(state, b, row);
  }
  store(state, final_states + rows.in_state, HEAD_DIM, rows.rows, rows.lane);
  rows.clear(states);
}

// dots has, for each chunk and row of the state, the row's terms of ⟨G, S⟩.
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
[[kernel]] void ssm_state_gradients(
    device const T* dy [[buffer(0)]],
    device const T* c [[buffer(1)]],
    device const float* states [[buffer(2)]],
    device const float* d_final [[buffer(3)]],
    device const float* decays [[buffer(4)]],
    device const int* starts [[buffer(5)]],
    device const int* size_values [[buffer(6)]],
    device float* d_states [[buffer(7)]],
    device float* d_initial [[buffer(8)]],
    device float* dots [[buffer(9)]],
    uint3 group [[threadgroup_position_in_grid]],
    uint lane [[thread_index_in_simdgroup]],
    uint simdgroup [[simdgroup_index_in_threadgroup]]) {
  typedef StateRows<true, T, LANES, SIMDGROUPS, BLOCK_M, BLOCK_N, CHUNK, HEADS, GROUPS, HEAD_DIM, STATE_DIM> Rows;
  threadgroup T memory[Rows::RightPanel::SIZE];
  Rows rows = {};
  rows.begin(size_values, starts, decays, dy, memory, group, lane, simdgroup);
  typename Rows::State state;
  load_rows<true>(state, d_final + rows.in_state, HEAD_DIM, rows.rows, HEAD_DIM, rows.lane);
  for (int i = rows.panels() - 1; i >= 0; i--) {
    const int row = i * BLOCK_N, chunk = row / CHUNK;
    rows.advance(row);
    if (i == rows.panels() - 1 || (row + BLOCK_N) % CHUNK == 0) {
      store(state, d_states + rows.in_chunk(chunk), HEAD_DIM, rows.rows, rows.lane);
      float sums[Rows::State::LANE_ROWS];
      typename Rows::State products = state;
      dot_rows(products, states + rows.in_chunk(chunk), HEAD_DIM, rows.rows, sums, rows.lane);
      for (int r = 0; r < Rows::State::LANE_ROWS; r++) {
        const int n = Rows::State::row(r, rows.lane);
        // One of the lanes that share the row writes.
        if (n < rows.rows && Rows::State::column(0, rows.lane) == 0) {
          dots[(size_t(rows.first_slot + chunk) * HEADS + rows.head) * STATE_DIM + rows.first + n] = sums[r];
        }
      }
      const StepDecay end = rows.end_of(chunk);
      multiply(state, end.from_start());
    }
    rows.add(state, c, row);
  }
  store(state, d_initial + rows.in_state, HEAD_DIM, rows.rows, rows.lane);
  rows.clear(d_states);
}
