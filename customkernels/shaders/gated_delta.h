// The gated delta rule in chunks of steps. Reference: compare/oracle/gateddelta.go.
//
// Each value head has a state S, a matrix of HEAD_DIM × VALUE_DIM. For the steps t of a sequence, with the decay α_t:
//
//   u_t = β_t · (v_t − α_t · S_{t−1}ᵀ k_t),  S_t = α_t · S_{t−1} + k_t u_tᵀ,  o_t = scale · S_tᵀ q_t
//
// (Yang, Kautz, Hatamizadeh, "Gated Delta Networks", 2024, arXiv 2412.06464, section 3.) Let S be the state at the
// start of a chunk, C its last step, b_t the sum of log α from its first step to t, and Q, K, V, U, O the matrices
// whose rows are q_t, k_t, v_t, u_t, o_t. Row t of e^b ⊙ K is e^{b_t}·k_t. Then
//
//   A_tj = β_t · e^{b_t − b_j} · k_t·k_j      for j < t, otherwise 0
//   P_tj = scale · e^{b_t − b_j} · q_t·k_j    for j ≤ t, otherwise 0
//   T    = (I + A)⁻¹ − I
//   W    = β e^b ⊙ K + T (β e^b ⊙ K)
//   U    = β ⊙ V + T (β ⊙ V) − W S
//   O    = scale · (e^b ⊙ Q) S + P U
//   S_C  = e^{b_C} · S + (e^{b_C − b} ⊙ K)ᵀ U
//
// With dO the cotangent of O, and dS_C the gradient of S_C,
//
//   dU = Pᵀ dO + (e^{b_C − b} ⊙ K) dS_C
//   dS = e^{b_C} · dS_C + scale · (e^b ⊙ Q)ᵀ dO − Wᵀ dU
//   dR = dU + Tᵀ dU,  dV = β ⊙ dR
//   dP_tj = scale · e^{b_t − b_j} · (dO Uᵀ)_tj for j ≤ t,  dA_tj = −e^{b_t − b_j} · (dR Uᵀ)_tj for j < t
//   X  = dA K − e^b ⊙ (dR Sᵀ)                                     β_t·x_t is the gradient of k_t as the key of row t
//   Y  = e^{b_C − b} ⊙ (U dS_Cᵀ)                                  the gradient of k_t in S_C
//   Z  = dPᵀ Q + dAᵀ (β ⊙ K)                                      the gradient of k_j as the key of column j
//   dQ = scale · e^b ⊙ (dO Sᵀ) + dP K,  dK = β ⊙ X + Y + Z
//   dβ_t = k_t·x_t + v_t·dr_t
//   M_tj = P_tj · (dO Uᵀ)_tj − A_tj · (dR Uᵀ)_tj for j < t
//   d log α_t = Σ_{s ≥ t} e^{b_s} (scale · q_s·(S dO_s) − β_s k_s·(S dR_s)) + Σ_{s ≥ t > j} M_sj
//             + Σ_{j < t} k_j·y_j + e^{b_C} ⟨S, dS_C⟩
//
// T is 0 on the diagonal, so a product with T does not round the largest term.
//
// M_tj is the derivative with respect to b_t − b_j. Summing q·dq, k·x and k·z over the steps from t on would give the
// same number with a larger error, because M_tj is part of row t and of column j and cancels if both are in the sum.
//
// Kernels:
//
//   file                        kernel                       computes                              for each
//   gated_delta_forward.metal   gated_delta_chunks           P, A, T, −W and the sums of log α     chunk
//                               gated_delta_states           U, and S of every chunk in turn       sequence
//                               gated_delta_output           O                                     chunk
//   gated_delta_backward.metal  gated_delta_state_gradients  dU, and dS of every chunk in turn     sequence
//                               gated_delta_gradients        the gradients of the inputs           chunk
//   gated_delta_step.metal      gated_delta_step             one step of every sequence            sequence
//
// The columns of S, U and V are independent in the recurrence. So threadgroups of gated_delta_states,
// gated_delta_state_gradients and gated_delta_output have VALUE_BLOCK columns. All sums have a fixed order, so results
// have the same bits in every run.
//
// Arithmetic and storage are float. Intermediate matrices are in device memory, by the chunk's slot (chunk_bounds.h),
// with CHUNK rows. Rows beyond the chunk's last step are zero.
//
//   parameter    meaning                                    constraint
//   LANES        lanes of a simdgroup                       1, 32
//   SIMDGROUPS   simdgroups of a threadgroup                CHUNK / SIMDGROUPS is a multiple of 8; device tiles: of 16
//   CHUNK        steps of a chunk                           multiple of 32
//   HEAD_DIM     columns of q and k                         multiple of 16
//   VALUE_DIM    columns of v and o                         multiple of 16
//   HEAD_BLOCK   columns of a tile of HEAD_DIM columns      multiple of 8; device tiles: of 16; divides HEAD_DIM
//   VALUE_BLOCK  columns of a tile of VALUE_DIM columns     multiple of 8; device tiles: of 16; divides VALUE_DIM
//
// Launch: threadgroups of LANES · SIMDGROUPS threads. Their position is the value head along y, the batch along z, and
// along x the chunk's slot or the sequence, times VALUE_DIM / VALUE_BLOCK plus the block of columns if the kernel has
// blocks.

#include "chunk_product.h"

#include "chunk_bounds.h"
#include "chunk_decay.h"

// The numbers of a chunk's steps in device memory: STEP_FIELDS arrays of CHUNK floats.
constant constexpr int STEP_HIGH = 0, STEP_LOW = 1;  // the DecaySum b
constant constexpr int STEP_BETA = 2;                // β
constant constexpr int STEP_FROM_START = 3;          // e^b
constant constexpr int STEP_TO_END = 4;              // e^{b_C − b}
constant constexpr int STEP_KEY = 5;                 // −β·e^b
constant constexpr int STEP_QUERY = 6;               // scale·e^b
constant constexpr int STEP_FIELDS = 7;

// A DeltaChunk is the work of a simdgroup in a chunk. A threadgroup has CHUNK rows, and a simdgroup has ROWS of them.
template <int LANES, int SIMDGROUPS, int CHUNK, int HEAD_DIM, int VALUE_DIM, int HEAD_BLOCK, int VALUE_BLOCK>
struct DeltaChunk {
  typedef Team<LANES, SIMDGROUPS> TEAM;
  static constexpr constant int ROWS = CHUNK / SIMDGROUPS;
  // Terms of a sum that are added at a time. Short sums have smaller rounding errors.
  static constexpr constant int STEP_TERMS = LANES == 1 ? 8 : 32;
  static constexpr constant int HEAD_TERMS = LANES == 1 ? 8 : HEAD_BLOCK;
  static constexpr constant int STATE_SIZE = HEAD_DIM * VALUE_DIM;
  typedef Tile<LANES, ROWS, CHUNK> Scores;
  typedef Tile<LANES, ROWS, HEAD_BLOCK> HeadTile;
  typedef Tile<LANES, ROWS, VALUE_BLOCK> ValueTile;
  typedef LeftMatrix<false, false> Rows;
  typedef LeftMatrix<false, true> ScaledRows;
  typedef LeftMatrix<true, false> Columns;
  typedef LeftMatrix<true, true> ScaledColumns;
  typedef RightMatrix<HEAD_DIM> Heads;
  typedef RightMatrix<VALUE_DIM> Values;

  // Floats of threadgroup memory for the panels of sums over HEAD_DIM, VALUE_DIM and steps.
  static constexpr constant int STATE_PANEL = Panel<LANES, float, HEAD_BLOCK, VALUE_BLOCK, VALUE_DIM>::SIZE;
  static constexpr constant int HEAD_PANEL = Panel<LANES, float, CHUNK, HEAD_BLOCK, HEAD_DIM>::SIZE;
  static constexpr constant int VALUE_PANEL = Panel<LANES, float, CHUNK, VALUE_BLOCK, VALUE_DIM>::SIZE;
  static constexpr constant int HEAD_STEPS = Panel<LANES, float, STEP_TERMS, HEAD_BLOCK, HEAD_DIM>::SIZE;
  static constexpr constant int VALUE_STEPS = Panel<LANES, float, STEP_TERMS, VALUE_BLOCK, VALUE_DIM>::SIZE;
  static constexpr constant int HEADS_MEMORY = HEAD_PANEL > HEAD_STEPS ? HEAD_PANEL : HEAD_STEPS;
  static constexpr constant int STATE_MEMORY = STATE_PANEL > VALUE_STEPS ? STATE_PANEL : VALUE_STEPS;
  static constexpr constant int VALUES_MEMORY = STATE_MEMORY > VALUE_PANEL ? STATE_MEMORY : VALUE_PANEL;
  static constexpr constant int MEMORY = HEADS_MEMORY > VALUES_MEMORY ? HEADS_MEMORY : VALUES_MEMORY;

  TEAM team;
  ChunkSizes sizes;
  int batch, head;  // a value head
  int first_row;    // of the simdgroup
  StepRange range;

  // init identifies the thread.
  void init(device const int* size_values, uint3 group, uint lane, uint simdgroup) {
    team = {lane, SIMDGROUPS == 1 ? 0 : simdgroup};
    sizes = load_chunk_sizes(size_values);
    batch = group.z;
    head = group.y;
    first_row = int(team.simdgroup) * ROWS;
  }

  // key_row, value_row and slot return the index of the chunk's first row in q and k, of its first row in arrays of the
  // value heads, and of the chunk in arrays of all slots.
  size_t key_row() const {
    return (size_t(batch) * sizes.key_heads + sizes.key_head(head)) * sizes.length + range.first;
  }
  size_t value_row() const { return (size_t(batch) * sizes.value_heads + head) * sizes.length + range.first; }
  size_t slot() const { return (size_t(batch) * sizes.value_heads + head) * sizes.slots + range.slot; }

  // field returns an array of the chunk's steps.
  device const float* field(device const float* steps, int which) const {
    return steps + (slot() * STEP_FIELDS + which) * CHUNK;
  }

  // square returns a CHUNK × CHUNK matrix of the chunk.
  device const float* square(device const float* matrices) const { return matrices + slot() * (CHUNK * CHUNK); }

  // head_rows returns the chunk's rows of q or k.
  Rows head_rows(device const float* x) const {
    return {x + key_row() * HEAD_DIM, HEAD_DIM, range.steps, HEAD_DIM, nullptr};
  }

  // decay_scores multiplies products of rows t and j by e^{b_t − b_j}. It sets them to 0 if j > t, or j = t if STRICT.
  template <bool STRICT>
  void decay_scores(thread Scores& products, device const float* steps, float factor) const {
    device const float* const high = field(steps, STEP_HIGH);
    device const float* const low = field(steps, STEP_LOW);
    for (int i = 0; i < Scores::LANE_ROWS; i++) {
      const int t = first_row + Scores::row(i, team.lane);
      const DecaySum sum = {high[t], low[t]};
      for (int n = 0; n < Scores::LANE_COLUMNS; n++) {
        const int j = Scores::column(n, team.lane);
        const DecaySum earlier = {high[j], low[j]};
        const float value = products.get(i, n) * (factor * sum.since(earlier));
        products.set(i, n, j < t || (!STRICT && j == t) ? value : 0.0f);
      }
    }
  }

  // load_state reads VALUE_BLOCK columns of a state from `row` on.
  void load_state(thread ValueTile& tile, device const float* state, int row) const {
    const Rows rows = {state, VALUE_DIM, HEAD_DIM, VALUE_BLOCK, nullptr};
    rows.load(tile, row, 0, team.lane);
  }

  // store_state writes VALUE_BLOCK columns of a state from `row` on.
  void store_state(thread ValueTile& tile, device float* state, int row) const {
    store(tile, state + row * VALUE_DIM, VALUE_DIM, HEAD_DIM - row, team.lane);
  }

  // copy_state copies VALUE_BLOCK columns of a state.
  void copy_state(device const float* from, device float* to) const {
    for (int row = first_row; row < HEAD_DIM; row += CHUNK) {
      ValueTile tile;
      load_state(tile, from, row);
      store_state(tile, to, row);
    }
  }
};

// A StateWalk is the iteration of a threadgroup over the chunks of a sequence. The states of all slots, or their
// gradients, are in `states`.
template <typename BLOCK, int CHUNK, int VALUE_DIM, int VALUE_BLOCK>
struct StateWalk {
  StepRange sequence;
  int chunks;
  int column;          // the threadgroup's first column
  size_t first_slot;   // index of the sequence's first chunk among the slots
  size_t outer_state;  // index of the sequence in the arrays of initial and final states

  void init(thread BLOCK& block, device const int* starts, uint group) {
    const int blocks = VALUE_DIM / VALUE_BLOCK;
    const int index = int(group) / blocks;
    sequence = sequence_range<CHUNK>(block.sizes, starts, index);
    chunks = max(sequence.steps + CHUNK - 1, 0) / CHUNK;
    column = int(group) % blocks * VALUE_BLOCK;
    block.range = {sequence.first, 0, sequence.slot};
    first_slot = block.slot();
    outer_state = size_t(block.sizes.sequences == 0 ? block.batch : index) * block.sizes.value_heads + block.head;
  }

  // chunk returns the steps of chunk i.
  StepRange chunk(int i) const {
    return {sequence.first + i * CHUNK, min(sequence.steps - i * CHUNK, CHUNK), sequence.slot + i};
  }

  // state returns the state of chunk i, or of the sequence if there is no chunk i, from the walk's first column on.
  device float* state(device float* states, device float* outer, int i) const {
    device float* const matrix =
        i < 0 || i >= chunks ? outer + outer_state * BLOCK::STATE_SIZE : states + (first_slot + i) * BLOCK::STATE_SIZE;
    return matrix + column;
  }
};
