// Attention, forward and backward, without the scores in device memory. Reference: compare/oracle/attention.go.
//
// For each batch and query head h, with the key and value head h / G, G = Hq / Hkv, and the rows q_i (i < Lq), k_j and
// v_j (j < Lkv):
//
//   s_ij = scale · q_i·k_j;  with a soft cap c, c·tanh(s_ij / c);  then + mask_ij
//   p_ij = exp(s_ij − lse_i),  lse_i = log(Σ_j exp(s_ij) + exp(sink_h))
//   o_i  = Σ_j p_ij · v_j
//
// over the keys j that query i sees: i + low ≤ j ≤ i + high, and mask_ij is true if the mask is boolean. low and high
// follow from the window and the lengths of the sequence (Band). A row that sees no key has o = 0 and no gradient.
//
// With do the cotangent of o and dlse the cotangent of lse (Dao et al., "FlashAttention", 2022, appendix B.2):
//
//   delta_i = Σ do_i·o_i − dlse_i
//   dz_ij   = p_ij · (do_i·v_j − delta_i)             the gradient of the mask
//   ds_ij   = dz_ij · sech²(s_ij / c)                 the gradient of s before the cap
//   dq_i = scale · Σ_j ds_ij·k_j,  dk_j = scale · Σ_i ds_ij·q_i,  dv_j = Σ_i p_ij·do_i
//
// Kernels:
//
//   file                      kernel                     computes
//   attention_forward.metal   attention_forward          o, m and l
//   attention_backward.metal  attention_delta            RowStats of every query, from products with v
//                             attention_delta_of_output  RowStats of every query, from o
//                             attention_dq               dq
//                             attention_dkv              dk and dv
//   attention_gradients.metal attention_gradients        RowStats, dq, dk and dv, for simdgroups of one lane
//   attention_mask.metal      attention_mask_bits        the bits of a boolean mask, for simdgroups of 32 lanes
//                             attention_dmask            the gradient of a mask of numbers
//
// Between the kernels, only m, l, the RowStats and the bits of a boolean mask are in device memory. Each kernel
// recomputes s and p. attention_gradients may keep tiles of them for one block of queries. One simdgroup, or pair, owns
// each sum and adds in the order of rows, so results have the same bits in every run.
//
// Arithmetic: q, k, v, o and their gradients are stored as T. Products are accumulated in float and scores are scaled
// in float. p and ds are floats. A device whose matrix unit requires operands of type T rounds them to T for products
// (tiles.h).
//
// Launch: a threadgroup of LANES · SIMDGROUPS threads processes a block of GROUP_ROWS rows. Its position is the block
// along x, the head along y and the batch along z. attention_backward.metal and attention_mask.metal describe the
// launches of attention_delta_of_output, attention_dmask and attention_mask_bits.
//
//   parameter    meaning                                    constraint
//   T            dtype of q, k, v, o and their gradients    float, half, bfloat
//   MASK_T       dtype of the mask                          float, half, bfloat; boolean: bool, or Bits if LANES > 1
//   CAPPED       the scores have a soft cap
//   MASKED       there is a mask
//   PAIRED       two simdgroups share BLOCK_M rows          LANES 32 or 128, SIMDGROUPS even, widths multiples of 16
//   LANES        lanes of a simdgroup                       1, 32; 128 (tiles.h) without a mask of numbers
//   SIMDGROUPS   simdgroups of a threadgroup                for 128 lanes: 2 if PAIRED, otherwise 1; floats: 1, 2
//   BLOCK_M      rows of a simdgroup                        multiple of 8; device tiles: of 16
//   BLOCK_N      rows of a panel                            multiple of 8; device tiles: of 16
//   HEAD_DIM     columns of q and k                         multiple of 8
//   VALUE_DIM    columns of v and o                         multiple of 8
//
// CAPPED and MASKED are template parameters because the code without them takes fewer registers. PAIRED is for rows
// that exceed the registers of one simdgroup. Two neighboring simdgroups share the rows: each holds half of the columns
// of q, k, v and o, and they add their partial scores.
//
// Packed sequences follow each other along the length axis. A block has rows of one sequence only, so the grid has up
// to one more block for each sequence. Kernels whose rows are queries begin with the last block: under a causal mask
// the last queries see the most keys, and no long-running threadgroup should start at the end.
//
// Panels that no row of a threadgroup sees are not fetched. A simdgroup that is not PAIRED skips tiles that a boolean
// mask hides completely. Elements are compared with the band only in tiles that are partly outside of it.

#include "attention_scores.h"

// An AttentionBlock is the work of one simdgroup. The simdgroup owns BLOCK_M queries, the rows of its tiles of scores,
// and iterates over the keys, the columns, BLOCK_N at a time. If TRANSPOSED, it owns keys and iterates over queries.
// Positions, such as `first` and `column`, count from the start of the sequence. HEAD_USES and VALUE_USES are the USES
// of the panels (tiles.h).
template <
    bool TRANSPOSED,
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
    int HEAD_USES = FOR_BOTH,
    int VALUE_USES = FOR_BOTH>
struct AttentionBlock {
  static constexpr constant int PARTS = PAIRED ? 2 : 1;
  static constexpr constant int UNITS = LANES > 32 ? LANES / 32 : 1;  // the device's simdgroups in a simdgroup
  static constexpr constant int GROUP_ROWS = BLOCK_M * SIMDGROUPS / PARTS;
  static constexpr constant int PANEL_THREADS = LANES * SIMDGROUPS / PARTS;  // threads that share a panel

  static constexpr constant int TILES = LANES == 1 ? BY_COLUMNS : LANES;
  typedef Tile<TILES, BLOCK_M, BLOCK_N> Scores;
  typedef ElementOrder<Scores> Order;
  typedef Operand<TILES, T, BLOCK_M, HEAD_DIM / PARTS> HeadOperand;  // rows of q or k
  typedef StoredOperand<TILES, T, BLOCK_M, HEAD_DIM / PARTS, HEAD_DIM> StoredHeads;
  typedef StoredOperand<TILES, T, BLOCK_M, VALUE_DIM / PARTS, VALUE_DIM> StoredValues;
  typedef WideOperand<TILES, T, BLOCK_M, VALUE_DIM / PARTS, VALUE_DIM> WideValues;
  typedef Tile<TILES, BLOCK_M, HEAD_DIM / PARTS> HeadTile;    // sums of dq or dk
  typedef Tile<TILES, BLOCK_M, VALUE_DIM / PARTS> ValueTile;  // sums of o or dv
  typedef Panel<TILES, T, BLOCK_N, HEAD_DIM / PARTS, HEAD_DIM, HEAD_USES> HeadPanel;
  typedef Panel<TILES, T, BLOCK_N, VALUE_DIM / PARTS, VALUE_DIM, VALUE_USES> ValuePanel;
  typedef StoredStats<T, MASK_T, MASKED> Stored;
  typedef Panel<LANES, float, BLOCK_N, Stored::COUNT, ROW_STATS_SIZE, FOR_ROWS | (HEAD_USES & IN_FLIGHT)> StatsPanel;
  static constexpr constant bool AHEAD = (HEAD_USES & IN_FLIGHT) != 0;

  // Elements of threadgroup memory. An array must have at least one.
  static constexpr constant int HEAD_MEMORY = PARTS * HeadPanel::SIZE;
  static constexpr constant int VALUE_MEMORY = PARTS * ValuePanel::SIZE;
  static constexpr constant int OPERAND_MEMORY = SIMDGROUPS * (StoredHeads::SIZE + StoredValues::SIZE) + 1;
  static constexpr constant int WIDE_MEMORY = SIMDGROUPS * WideValues::SIZE + 1;
  static constexpr constant int PARTIAL_MEMORY = PAIRED ? SIMDGROUPS * BLOCK_M * BLOCK_N / 2 : 1;

  Sizes sizes;
  MaskSizes mask_sizes;  // if MASKED
  Scoring scoring;
  Sequence sequence;
  Band band;
  int batch, head;         // a query head, or a key head if TRANSPOSED
  int group_first, first;  // position of the threadgroup's and of the simdgroup's first row
  int rows;                // rows of the sequence from `first` on; 0 or less if the simdgroup has none
  size_t row;              // index of row `first` in q and o, or in k and v if TRANSPOSED
  uint lane, simdgroup;
  uint part;  // PAIRED: the simdgroup's half of the columns of q, k, v and o, 0 or 1
  // Indices among all threads and among PANEL_THREADS. Recomputing them in the loop would take more registers.
  uint thread_index, panel_thread;

  HeadPanel heads;                           // columns of the scores: rows of k, or of q if TRANSPOSED
  ValuePanel values;                         // the same rows of v, or of do if TRANSPOSED
  StatsPanel stats;                          // the RowStats of the queries if TRANSPOSED
  StatsArrays<Scores::LANE_ROWS> row_stats;  // the RowStats of the lane's queries if not TRANSPOSED
  MaskTile<TRANSPOSED, MASK_T, TILES, BLOCK_M, BLOCK_N> mask_tile;
  Mask<MASK_T> mask;
  device const T* next_heads;  // sources of the next panels
  device const T* next_values;
  device const float* next_stats;
  device const MASK_T* masks;
  size_t column_row;             // index of the sequence's first row in k and v, or in q and do if TRANSPOSED
  int column_head, end_head;     // current head of the columns, and one past their last head
  int first_column, end_column;  // positions of the columns that some row of the threadgroup sees

  // head_offset and value_offset return where the simdgroup's part of a row begins in q or k, and in v or o.
  size_t head_offset(size_t r) const { return r * HEAD_DIM + part * (HEAD_DIM / PARTS); }
  size_t value_offset(size_t r) const { return r * VALUE_DIM + part * (VALUE_DIM / PARTS); }

  // begin finds the simdgroup's rows. `index` numbers the threadgroups of a head. begin reports whether the threadgroup
  // has rows: a grid for packed sequences may have more blocks than the sequences fill.
  bool begin(
      device const int* size_values,
      device const float* scalars,
      device const int* query_starts,
      device const int* key_starts,
      uint index,
      uint3 group,
      uint lane_index,
      uint simdgroup_index) {
    lane = lane_index + simdgroup_index % UNITS * 32;
    simdgroup = SIMDGROUPS == 1 ? 0 : simdgroup_index / UNITS;  // a constant keeps branches on it uniform
    part = simdgroup % PARTS;
    thread_index = simdgroup * LANES + lane;
    panel_thread = simdgroup / PARTS * LANES + lane;
    head = group.y;
    batch = group.z;
    sizes = load_sizes(size_values);
    if (MASKED) {
      mask_sizes = load_mask_sizes(size_values);
    }
    scoring = load_scoring<T>(scalars);
    sequence = find_sequence<TRANSPOSED>(sizes, query_starts, key_starts, index, GROUP_ROWS, group_first);
    band = band_of(sizes, sequence);
    first = group_first + int(simdgroup / PARTS) * BLOCK_M;
    rows = (TRANSPOSED ? sequence.keys : sequence.queries) - first;
    row = first_row(TRANSPOSED, head) + first;
    return group_first < (TRANSPOSED ? sequence.keys : sequence.queries);
  }

  // first_row returns the index of the sequence's first row: in k for key head `of_head` if is_key, otherwise in q for
  // query head `of_head`.
  size_t first_row(bool is_key, int of_head) const {
    return is_key ? (size_t(batch) * sizes.key_heads + of_head) * sizes.keys + sequence.key
                  : (size_t(batch) * sizes.query_heads + of_head) * sizes.queries + sequence.query;
  }

  // walk starts the iteration over the columns: the rows of k and v, or of q and do if TRANSPOSED.
  void walk(
      device const T* k_or_q,
      device const T* v_or_do,
      device const MASK_T* mask_values,
      threadgroup T* head_memory,
      threadgroup T* value_memory) {
    const int shared = sizes.query_heads / sizes.key_heads;
    masks = mask_values;
    column_head = TRANSPOSED ? head * shared : head / shared;
    end_head = column_head + (TRANSPOSED ? shared : 1);
    column_row = first_row(!TRANSPOSED, column_head);
    first_column = (TRANSPOSED ? band.first_query(group_first) : band.first_key(group_first)) / BLOCK_N * BLOCK_N;
    end_column = TRANSPOSED ? band.end_query(group_first, GROUP_ROWS) : band.end_key(group_first, GROUP_ROWS);
    const int columns = end_column - first_column;
    next_heads = k_or_q + head_offset(column_row + first_column);
    next_values = v_or_do + value_offset(column_row + first_column);
    heads.init(head_memory + part * HeadPanel::SIZE, next_heads, columns, panel_thread, PANEL_THREADS);
    values.init(value_memory + part * ValuePanel::SIZE, next_values, columns, panel_thread, PANEL_THREADS);
    mask = mask_at(TRANSPOSED ? column_head : head);
    prefetch_mask(mask, first_column, columns);
  }

  // walk_stats adds the RowStats of the queries to the iteration, if TRANSPOSED.
  void walk_stats(device const float* of_queries, threadgroup float* memory) {
    next_stats = of_queries + (column_row + first_column) * ROW_STATS_SIZE + Stored::FIRST;
    stats.init(memory, next_stats, end_column - first_column, thread_index, LANES * SIMDGROUPS);
  }

  // load_stats loads the RowStats of the simdgroup's queries, if not TRANSPOSED.
  void load_stats(device const float* of_queries) {
    for (int i = 0; i < Scores::LANE_ROWS; i++) {
      row_stats.set(i, load_row_stats(of_queries + row * ROW_STATS_SIZE, Scores::row(i, lane), rows));
    }
  }

  // fetch makes the panels at `column` of head `of_head` the current ones, and prefetches the next panels, which may be
  // the first of the next head. It returns the number of rows of the next panels and of those after them.
  int fetch(int column, int of_head) {
    const int left = end_column - column - BLOCK_N;
    const bool is_last = TRANSPOSED && left <= 0;
    const size_t step = is_last ? sizes.queries + first_column - column : BLOCK_N;
    int next_rows = !is_last ? left : of_head + 1 < end_head ? end_column - first_column : 0;
    if (AHEAD && TRANSPOSED && of_head >= end_head) {
      next_rows = 0;
    }
    next_heads += step * HEAD_DIM;
    next_values += step * VALUE_DIM;
    acquire(heads, values);
    heads.advance(next_heads, next_rows, panel_thread, PANEL_THREADS);
    values.advance(next_values, next_rows, panel_thread, PANEL_THREADS);
    if (TRANSPOSED) {
      next_stats += step * ROW_STATS_SIZE;
      stats.advance(next_stats, next_rows, thread_index, LANES * SIMDGROUPS);
    }
    commit(heads, values);
    return next_rows;
  }

  // If AHEAD, fetch_first fetches the first panels, and fetch_next fetches the panels after those at `column` while
  // products of the current ones are in flight. Otherwise advance fetches.
  void fetch_first() {
    if (AHEAD) {
      fetch(first_column, column_head);
    }
  }
  void fetch_next(int column) {
    if (AHEAD) {
      const bool is_last = TRANSPOSED && column + BLOCK_N >= end_column;
      fetch(is_last ? first_column : column + BLOCK_N, column_head + is_last);
    }
  }

  // advance begins the work on the panels at `column`, and reads the mask there. It reports whether the tile of scores
  // must be computed. A PAIRED simdgroup computes every tile, because all simdgroups must reach the barriers in
  // complete.
  bool advance(int column) {
    const int next_rows = AHEAD ? 0 : fetch(column, column_head);
    const int query = TRANSPOSED ? column : first, key = TRANSPOSED ? first : column;
    // A single warpgroup, or a pair, visits only panels that its rows see.
    bool is_seen =
        (LANES > 32 && SIMDGROUPS == PARTS) ||
        (rows > 0 && band.sees_some(query, TRANSPOSED ? BLOCK_N : BLOCK_M, key, TRANSPOSED ? BLOCK_M : BLOCK_N));
    if (MASKED && is_seen) {
      mask_tile.load(mask, query, key, band.queries - query, band.keys - key, lane);
      is_seen = !mask_tile.hides_all();
    }
    const bool is_last = TRANSPOSED && column + BLOCK_N >= end_column;
    prefetch_mask(is_last ? mask_at(column_head + 1) : mask, is_last ? first_column : column + BLOCK_N, next_rows);
    return PAIRED || is_seen;
  }

  // begin_tile declares the elements of a tile at `column` whose keys are beyond the band, so that products omit them.
  void begin_tile(thread Scores& tile, int column) const {
    if (!TRANSPOSED) {
      begin_diagonal(tile, max(column - first - band.high, -BLOCK_N));
    }
  }

  // next_head continues the iteration with the queries of the next head that shares the keys.
  void next_head() {
    column_head++;
    column_row += sizes.queries;
    mask = mask_at(column_head);
  }

  Mask<MASK_T> mask_at(int query_head) const {
    return mask_of<TRANSPOSED>(masks, mask_sizes, sequence, batch, query_head);
  }

  void prefetch_mask(Mask<MASK_T> from, int column, int columns) {
    if (MASKED) {
      mask_tile.prefetch(
          from, TRANSPOSED ? column : first, TRANSPOSED ? first : column, TRANSPOSED ? columns : rows,
          TRANSPOSED ? rows : columns, lane);
    }
  }

  // complete finishes a product left · rightᵀ. The product of a PAIRED simdgroup is over its half of HEAD_DIM or
  // VALUE_DIM. The pair exchanges these partial products through memory and adds them. IS_FIRST tells that the memory
  // was not used since `advance`.
  template <int PENDING, bool IS_FIRST>
  void complete(thread Scores& tile, threadgroup Vec<float, 2>* memory) {
    finish<PENDING>(tile);
    if (PAIRED) {
      if (!IS_FIRST) {
        threadgroup_barrier(mem_flags::mem_threadgroup);
      }
      constexpr int PAIRS = BLOCK_M * BLOCK_N / 2;
      add_other_half<LANES>(tile, memory + simdgroup * PAIRS + lane, memory + (simdgroup ^ 1) * PAIRS + lane);
    }
  }

  // score turns products q·k into scores and adds a mask of numbers. hide applies a boolean mask and the band later.
  void score(thread Scores& tile) const {
    for (int a = 0; a < Order::OUTER; a++) {
      for (int b = 0; b < Order::INNER; b++) {
        const int i = Order::row(a, b), j = Order::column(a, b);
        const float score = CAPPED ? scoring.capped(tile.get(i, j)) : scoring.scaled(tile.get(i, j));
        const bool adds_mask = MASKED && !IsBoolean<MASK_T>::value;
        tile.set(i, j, adds_mask ? score + float(mask_tile.get(i, j)) * scoring.unit : score);
      }
    }
  }

  // hide sets each element of the tile at `column` whose query does not see its key to `value`.
  void hide(thread Scores& tile, float value, int column) const {
    if (MASKED && IsBoolean<MASK_T>::value) {
      for (int a = 0; a < Order::OUTER; a++) {
        for (int b = 0; b < Order::INNER; b++) {
          const int i = Order::row(a, b), j = Order::column(a, b);
          tile.set(i, j, mask_tile.get(i, j) ? tile.get(i, j) : value);
        }
      }
    }
    const int query = TRANSPOSED ? column : first, key = TRANSPOSED ? first : column;
    if (!band.sees_all(query, TRANSPOSED ? BLOCK_N : BLOCK_M, key, TRANSPOSED ? BLOCK_M : BLOCK_N)) {
      const Band seen = band;
      for (int a = 0; a < Order::OUTER; a++) {
        for (int b = 0; b < Order::INNER; b++) {
          const int i = Order::row(a, b), j = Order::column(a, b);
          const int r = Scores::row(i, lane), c = Scores::column(j, lane);
          const bool is_seen = seen.sees(query + (TRANSPOSED ? c : r), key + (TRANSPOSED ? r : c));
          tile.set(i, j, is_seen ? tile.get(i, j) : value);
        }
      }
    }
  }

  // probability returns p for a score.
  static float probability(RowStats of_query, float score) {
    if (Stored::BY_LOGSUMEXP) {
      return Exponential<T>::of(score - of_query.logsumexp);
    }
    return Exponential<T>::of(score - of_query.maximum) * of_query.inverse_sum;
  }

  // panel_stats returns the RowStats of the query of column `column`, if TRANSPOSED.
  RowStats panel_stats(int column) const {
    float stored[ROW_STATS_SIZE] = {};
    stats.get_row(column, stored + Stored::FIRST);
    return {stored[0], stored[1], stored[2], stored[3]};
  }

  // stats_of returns the RowStats of the query of the lane's element (i, j).
  RowStats stats_of(int i, int j) const { return TRANSPOSED ? panel_stats(Scores::column(j, lane)) : row_stats.get(i); }

  // probabilities turns products q·k into p. If CAPPED, it returns the products, which uncap needs.
  void probabilities(thread Scores& tile, thread Scores& products) const {
    if (CAPPED) {
      products = tile;
    }
    score(tile);
    if (!TRANSPOSED) {
      Exponential<T>::template replace<!Stored::BY_LOGSUMEXP>(
          tile, Stored::BY_LOGSUMEXP ? row_stats.logsumexp : row_stats.maximum, row_stats.inverse_sum);
      return;
    }
    for (int a = 0; a < Order::OUTER; a++) {
      for (int b = 0; b < Order::INNER; b++) {
        const int i = Order::row(a, b), j = Order::column(a, b);
        tile.set(i, j, probability(panel_stats(Scores::column(j, lane)), tile.get(i, j)));
      }
    }
  }

  // mask_gradients turns products do·v into dz.
  void mask_gradients(thread Scores& products, thread Scores& p) const {
    for (int a = 0; a < Order::OUTER; a++) {
      for (int b = 0; b < Order::INNER; b++) {
        const int i = Order::row(a, b), j = Order::column(a, b);
        products.set(i, j, p.get(i, j) * (products.get(i, j) - stats_of(i, j).delta));
      }
    }
  }
};
