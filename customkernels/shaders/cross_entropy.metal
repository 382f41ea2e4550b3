// Cross-entropy of rows of logits and class targets: the loss and its gradient.
//
// For each of `rows` rows of V logits x, with target t, label smoothing ε, z-loss weight ζ and, if CAPPED, soft cap c:
//
//   s_j  = x_j, or c·tanh(x_j/c)
//   lse  = log Σ_j exp(s_j) = m + log l,  m = max_j s_j,  l = Σ_j exp(s_j − m)
//   loss = (1−ε)·(lse − s_t) + ε·(lse − mean_j s_j) + ζ·lse²
//
// With g the cotangent of loss and p_j = exp(s_j − m)/l = ∂lse/∂s_j:
//
//   ds_j = g·((1 + 2ζ·lse)·p_j − (1−ε)·[j = t] − ε/V)
//   dx_j = ds_j, or ds_j·sech²(x_j/c)
//
// A row with a negative target is ignored: its loss and gradient are 0. A row whose target is V or more has a NaN
// loss and gradient.
//
// Reference: compare/oracle/crossentropy.go.
//
// cross_entropy_forward and cross_entropy_backward may process a slice of the columns, the classes from first_class on.
// V (`classes`) is then still the number of all classes. The state of a row, (m, l, Σ_j s_j, s_t), is passed from
// kernel to kernel. In the state of a slice, s_t is 0 if t is not in the slice. cross_entropy_merge combines the states
// of all slices. The state of all classes has the bits of t in the place of s_t, so cross_entropy_backward reads no
// targets. The state has m and l and not lse, because the rounding of lse would change p by more than p's own rounding.
//
//   cross_entropy_forward   state, and the loss if the slice has all classes
//   cross_entropy_fwd_bwd   loss, state and dx, for g = 1/divisor
//   cross_entropy_reduce    the sum of the losses, divided by divisor
//   cross_entropy_merge     loss and state, from the states of the slices
//   cross_entropy_backward  dx, from the state of all classes
//
// Launch (logit_block.h shows how a group covers a row):
//
//   parameter        meaning                                          constraint
//   threadgroup      threads along x                                  part of one simdgroup, or 1 to 32 whole ones;
//                                                                     a multiple of INTERLEAVE
//   grid             groups along x; group i takes the rows i,        any number
//                    i + groups, …
//   T, HELD_T        types of logits and of logits in registers       HELD_T is T or float
//   INDEX_T          type of targets                                  int or uint
//   VEC              elements of a vector                             power of two
//   VECS_PER_THREAD  vectors that a thread holds of a block           multiple of VECS_PER_STEP
//   VECS_PER_STEP    vectors for which m and l are updated at once    at least 1
//   INTERLEAVE       neighboring threads that alternate in a block    at least 1
//   SMOOTHED         the label smoothing is not 0
//   THREADS          threads of a full threadgroup, for the memory
//                    of STAGED_BLOCKS
//   STAGED_BLOCKS    most blocks in threadgroup memory; see           0 unless HELD_T is T
//                    logit_rows.h
//
// In cross_entropy_backward, groups along x share the blocks of a row and groups along y share the rows. A GPU starts
// groups in the order of x, so it accesses the blocks of a row in the order of memory. The rows are processed from last
// to first, because a cache may still hold the last rows from the forward pass. In cross_entropy_merge each thread
// processes whole rows.
//
// Storage is T; products and sums are in float. The order of every sum depends only on the launch geometry, so results
// have the same bits in every run.
//
// Device traffic, in elements of T: forward rows·V; backward 2·rows·V. cross_entropy_fwd_bwd moves 2·rows·V. It reads
// the blocks of each thread again, but the staged ones and the last. Each of these kernels also reads one target logit
// per row.

#include "logit_rows.h"

// Computes the loss and the state of every row.
template <
    typename T,
    typename INDEX_T,
    typename HELD_T,
    int VEC,
    int VECS_PER_THREAD,
    int VECS_PER_STEP,
    int INTERLEAVE,
    bool CAPPED,
    bool SMOOTHED>
[[kernel]] void cross_entropy_forward(
    device const T* logits [[buffer(0)]],
    device const INDEX_T* targets [[buffer(1)]],
    constant uint& rows [[buffer(2)]],
    constant uint& width [[buffer(3)]],
    constant uint& first_class [[buffer(4)]],
    constant uint& classes [[buffer(5)]],
    constant float& smoothing [[buffer(6)]],
    constant float& z_loss [[buffer(7)]],
    constant float& soft_cap [[buffer(8)]],
    device float* losses [[buffer(9)]],
    device float* states [[buffer(10)]],
    uint group [[threadgroup_position_in_grid]],
    uint groups [[threadgroups_per_grid]],
    uint thread_index [[thread_position_in_threadgroup]],
    uint threads [[threads_per_threadgroup]],
    uint lane [[thread_index_in_simdgroup]],
    uint simdgroup [[simdgroup_index_in_threadgroup]],
    uint simdgroups [[simdgroups_per_threadgroup]]) {
  typedef LogitBlock<T, HELD_T, VEC, VECS_PER_THREAD, VECS_PER_STEP, INTERLEAVE, CAPPED, SMOOTHED> Block;
  const LossOptions options = LossOptions{width, first_class, classes, smoothing, z_loss, soft_cap};
  threadgroup float maxima[32];
  threadgroup float2 slots[32];
  const bool is_aligned = vec_aligned<VEC>(logits, options.width);
  const size_t stride = size_t(threads) * (VECS_PER_THREAD * VEC);
  const BlockColumns columns = block_columns(Block::first_column(thread_index), stride, options.width);
  const bool is_short = INTERLEAVE > 1 && options.width <= stride;  // a GPU adds a short row before its target arrives
  Block block;

  const GroupRows own_rows = group_rows(group, groups, rows, threads);
  for (uint row = own_rows.first; row < own_rows.end; row += own_rows.step) {
    device const T* x = logits + size_t(row) * options.width;
    const INDEX_T loaded = lane == 0 ? targets[row] : INDEX_T(0);
    RowSums sums = no_sums();
    if (is_short || class_of(simd_broadcast_first(loaded)) >= 0) {
      block.add_blocks(sums, x, columns, false, is_aligned, options);
      sums = group_sums<T>(sums, maxima, slots, lane, simdgroup, simdgroups);
    }
    const int target = class_of(simd_broadcast_first(loaded));
    if (target < 0) {
      sums = RowSums{0, 1, 0};  // the sums of an ignored row, with lse = 0
    }
    if (thread_index == 0) {
      write_row(target_score<CAPPED>(x, target, options), target, sums, losses, states, row, options);
    }
  }
}

// Computes the loss, the state and dx of every row, for the cotangent 1/divisor of all losses. If divisor is 0, the
// number of rows that are not ignored takes its place. used_divisor becomes the divisor.
template <
    typename T,
    typename INDEX_T,
    typename HELD_T,
    int VEC,
    int VECS_PER_THREAD,
    int VECS_PER_STEP,
    int INTERLEAVE,
    bool CAPPED,
    bool SMOOTHED,
    int THREADS,
    int STAGED_BLOCKS>
[[kernel]] void cross_entropy_fwd_bwd(
    device const T* logits [[buffer(0)]],
    device const INDEX_T* targets [[buffer(1)]],
    constant float& divisor [[buffer(2)]],
    constant uint& rows [[buffer(3)]],
    constant uint& width [[buffer(4)]],
    constant float& smoothing [[buffer(5)]],
    constant float& z_loss [[buffer(6)]],
    constant float& soft_cap [[buffer(7)]],
    device float* losses [[buffer(8)]],
    device float* states [[buffer(9)]],
    device T* dlogits [[buffer(10)]],
    device float* used_divisor [[buffer(11)]],
    uint group [[threadgroup_position_in_grid]],
    uint groups [[threadgroups_per_grid]],
    uint thread_index [[thread_position_in_threadgroup]],
    uint threads [[threads_per_threadgroup]],
    uint lane [[thread_index_in_simdgroup]],
    uint simdgroup [[simdgroup_index_in_threadgroup]],
    uint simdgroups [[simdgroups_per_threadgroup]]) {
  typedef LogitBlock<T, HELD_T, VEC, VECS_PER_THREAD, VECS_PER_STEP, INTERLEAVE, CAPPED, SMOOTHED> Block;
  typedef LogitBlock<T, HELD_T, VEC, VECS_PER_STEP, VECS_PER_STEP, INTERLEAVE, CAPPED, SMOOTHED> Step;
  typedef Vec<uint, (VEC * sizeof(HELD_T) + 3) / 4> Words;
  const LossOptions options = LossOptions{width, 0, width, smoothing, z_loss, soft_cap};
  threadgroup float maxima[32];
  threadgroup float2 slots[32];
  threadgroup Words staged[STAGED_BLOCKS > 0 ? STAGED_BLOCKS * VECS_PER_THREAD * THREADS : 1];
  const auto all = logit_rows<true, Block, Step, VEC, VECS_PER_THREAD, VECS_PER_STEP>(
      logits, dlogits, options, staged, STAGED_BLOCKS, thread_index, threads);
  const bool is_short = INTERLEAVE > 1 && options.width <= all.columns.stride;  // as in cross_entropy_forward
  Block block;

  const GroupRows own_rows = group_rows(group, groups, rows, threads);
  all.stage(own_rows.first, own_rows.end);
  threadgroup float* const counts = reinterpret_cast<threadgroup float*>(slots);  // group_sums begins with maxima
  const float used =
      divisor > 0 ? divisor : counted_rows(targets, rows, counts, thread_index, threads, lane, simdgroup, simdgroups);
  if (group == 0 && thread_index == 0) {
    used_divisor[0] = used;
  }
  for (uint row = own_rows.first; row < own_rows.end; row += own_rows.step) {
    const uint next = row + own_rows.step;
    const INDEX_T loaded = lane == 0 ? targets[row] : INDEX_T(0);
    RowSums sums = no_sums();
    if (is_short || class_of(simd_broadcast_first(loaded)) >= 0) {
      all.begin_row(row, block);
      all.add_to(sums, row, block);
      sums = group_sums<T>(sums, maxima, slots, lane, simdgroup, simdgroups);
    }
    const int target = class_of(simd_broadcast_first(loaded));
    if (target < 0) {
      sums = RowSums{0, 1, 0};  // the sums of an ignored row, with lse = 0
    }
    if (thread_index == 0) {
      write_row(target_score<CAPPED>(all.x_row(row), target, options), target, sums, losses, states, row, options);
    }
    const RowGradient gradient = row_gradient(1 / used, sums.maximum, sums.exp_sum, target, options);
    all.write_gradient(row, target < 0, gradient, next, own_rows.end, block);
  }
}

// Reduces the losses in one threadgroup.
template <int VEC>
[[kernel]] void cross_entropy_reduce(
    device const float* losses [[buffer(0)]],
    constant uint& rows [[buffer(1)]],
    constant float& divisor [[buffer(2)]],
    device float* loss [[buffer(3)]],
    uint thread_index [[thread_position_in_threadgroup]],
    uint threads [[threads_per_threadgroup]],
    uint lane [[thread_index_in_simdgroup]],
    uint simdgroup [[simdgroup_index_in_threadgroup]],
    uint simdgroups [[simdgroups_per_threadgroup]]) {
  threadgroup float scratch[32];
  const float divided_by = divisor;  // loaded before the losses, and not after their sum
  const float sum =
      threadgroup_sum(added_losses<VEC>(losses, rows, thread_index, threads), scratch, lane, simdgroup, simdgroups);
  if (thread_index == 0) {
    loss[0] = sum / divided_by;
  }
}

// Computes the loss and the state of every row from the states of `slice_count` slices, [slice_count, rows,
// STATE_SIZE].
template <typename INDEX_T>
[[kernel]] void cross_entropy_merge(
    device const float* slice_states [[buffer(0)]],
    device const INDEX_T* targets [[buffer(1)]],
    constant uint& rows [[buffer(2)]],
    constant uint& slice_count [[buffer(3)]],
    constant uint& classes [[buffer(4)]],
    constant float& smoothing [[buffer(5)]],
    constant float& z_loss [[buffer(6)]],
    device float* losses [[buffer(7)]],
    device float* states [[buffer(8)]],
    uint thread_index [[thread_position_in_grid]],
    uint threads [[threads_per_grid]]) {
  const LossOptions options = LossOptions{classes, 0, classes, smoothing, z_loss, 0};
  for (size_t row = thread_index; row < rows; row += threads) {
    const int target = class_of(targets[row]);
    RowSums sums = no_sums();
    float target_score = 0;
    for (uint i = 0; i < slice_count; i++) {
      add_state(slice_states + (size_t(i) * rows + row) * STATE_SIZE, sums, target_score);
    }
    write_row(target_score, target, sums, losses, states, row, options);
  }
}

// Writes dx to dlogits.
template <typename T, typename HELD_T, int VEC, int VECS_PER_THREAD, int VECS_PER_STEP, int INTERLEAVE, bool CAPPED>
[[kernel]] void cross_entropy_backward(
    device const T* logits [[buffer(0)]],
    device const float* states [[buffer(1)]],
    device const float* cotangents [[buffer(2)]],
    constant uint& rows [[buffer(3)]],
    constant uint& width [[buffer(4)]],
    constant uint& first_class [[buffer(5)]],
    constant uint& classes [[buffer(6)]],
    constant float& smoothing [[buffer(7)]],
    constant float& z_loss [[buffer(8)]],
    constant float& soft_cap [[buffer(9)]],
    device T* dlogits [[buffer(10)]],
    uint2 group [[threadgroup_position_in_grid]],
    uint2 groups [[threadgroups_per_grid]],
    uint thread_index [[thread_index_in_threadgroup]],
    uint2 threads [[threads_per_threadgroup]],
    uint lane [[thread_index_in_simdgroup]]) {
  typedef LogitBlock<T, HELD_T, VEC, VECS_PER_THREAD, VECS_PER_STEP, INTERLEAVE, CAPPED, false> Block;
  const LossOptions options = LossOptions{width, first_class, classes, smoothing, z_loss, soft_cap};
  const size_t block_size = size_t(threads.x) * (VECS_PER_THREAD * VEC);
  const size_t first = group.x * block_size + Block::first_column(thread_index);
  const BlockColumns columns = block_columns(first, groups.x * block_size, options.width);
  write_gradients<Block, VEC>(
      logits, states, cotangents, dlogits, rows, options, columns, group_rows(group.y, groups.y, rows, threads.x),
      lane);
}
