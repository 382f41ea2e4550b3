// Cross-entropy kernels whose gradient takes the place of the logits: cross_entropy_fwd_bwd and cross_entropy_backward
// of cross_entropy.metal, which has the formulas and the parameters of the launch.
//
// MLX's custom kernels cannot write to memory that exists, so the kernels write to inputs. Nodes that read the gradient
// depend on an output. In cross_entropy_backward_into, `destination` may be the memory of logits: a thread reads the
// logits of a block before it writes there, and one thread reads the target's logit before all threads of the group
// synchronize.
//
// cross_entropy_mean reduces the losses in one threadgroup, as cross_entropy_reduce does, and counts the rows.

#include "logit_rows.h"

// Computes the loss, the state and dx of every row, for a cotangent of 1, and replaces the logits by dx. If SPLIT,
// `rest` has the logits of the last rest_width classes.
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
    int STAGED_BLOCKS,
    bool SPLIT>
[[kernel]] void cross_entropy_fwd_bwd_into(
    device const T* logits [[buffer(0)]],
    device const T* rest [[buffer(1)]],
    device const INDEX_T* targets [[buffer(2)]],
    constant uint& rows [[buffer(3)]],
    constant uint& width [[buffer(4)]],
    constant uint& rest_width [[buffer(5)]],
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
  typedef LogitBlock<T, HELD_T, VEC, VECS_PER_STEP, VECS_PER_STEP, INTERLEAVE, CAPPED, SMOOTHED> Step;
  typedef Vec<uint, (VEC * sizeof(HELD_T) + 3) / 4> Words;
  threadgroup float maxima[32];
  threadgroup float2 slots[32];
  threadgroup Words staged[STAGED_BLOCKS > 0 ? STAGED_BLOCKS * VECS_PER_THREAD * THREADS : 1];
  const LossOptions options = LossOptions{width, 0, width + rest_width, smoothing, z_loss, soft_cap};
  const LossOptions all = LossOptions{width + rest_width, 0, width + rest_width, smoothing, z_loss, soft_cap};
  const LossOptions rest_options = LossOptions{rest_width, width, width + rest_width, smoothing, z_loss, soft_cap};
  const auto first = logit_rows<true, Block, Step, VEC, VECS_PER_THREAD, VECS_PER_STEP>(
      logits, (device T*)logits, options, staged, STAGED_BLOCKS, thread_index, threads);
  const auto others = logit_rows<SPLIT, Step, Step, VEC, VECS_PER_STEP, VECS_PER_STEP>(
      rest, (device T*)rest, rest_options, staged, 0, thread_index, threads);
  Block block;
  Step rest_block;

  const GroupRows own_rows = group_rows(group, groups, rows, threads);
  first.stage(own_rows.first, own_rows.end);
  INDEX_T next_target = targets[min(own_rows.first, rows - 1)];
  for (uint row = own_rows.first; row < own_rows.end; row += own_rows.step) {
    const uint next = row + own_rows.step;
    const int target = class_of(next_target);
    next_target = targets[min(next, rows - 1)];
    T target_logit = 0;
    if (thread_index == 0 && uint(target) < options.classes) {
      target_logit = uint(target) < width ? first.x_row(row)[target] : others.x_row(row)[target - width];
    }
    RowSums sums = RowSums{0, 1, 0};  // the sums of an ignored row, with lse = 0
    if (target >= 0) {
      first.begin_row(row, block);
      others.begin_row(row, rest_block);
      sums = no_sums();
      first.add_to(sums, row, block);
      others.add_to(sums, row, rest_block);
      sums = group_sums<T>(sums, maxima, slots, lane, simdgroup, simdgroups);
    }
    if (thread_index == 0) {
      const float score = uint(target) < options.classes ? capped<CAPPED>(float(target_logit), options) : 0;
      write_row(score, target, sums, losses, states, row, all);
    }
    const RowGradient gradient = row_gradient(1, sums.maximum, sums.exp_sum, target, options);
    first.write_gradient(row, target < 0, gradient, next, own_rows.end, block);
    others.write_gradient(row, target < 0, gradient, next, own_rows.end, rest_block);
  }
}

// Computes dx of every row from its state and writes it to `destination`. `written` is an output without content.
template <typename T, typename HELD_T, int VEC, int VECS_PER_THREAD, int VECS_PER_STEP, int INTERLEAVE, bool CAPPED>
[[kernel]] void cross_entropy_backward_into(
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
    device const T* destination [[buffer(10)]],
    device uint* written [[buffer(11)]],
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
      logits, states, cotangents, (device T*)destination, rows, options, columns,
      group_rows(group.y, groups.y, rows, threads.x), lane);
}

// Computes the mean of the losses of the rows that are not ignored. divisor becomes the number of these rows, at
// least 1.
template <int VEC>
[[kernel]] void cross_entropy_mean(
    device const float* losses [[buffer(0)]],
    device const int* targets [[buffer(1)]],
    constant uint& rows [[buffer(2)]],
    device float* loss [[buffer(3)]],
    device float* divisor [[buffer(4)]],
    uint thread_index [[thread_position_in_threadgroup]],
    uint threads [[threads_per_threadgroup]],
    uint lane [[thread_index_in_simdgroup]],
    uint simdgroup [[simdgroup_index_in_threadgroup]],
    uint simdgroups [[simdgroups_per_threadgroup]]) {
  threadgroup float counts[32];
  threadgroup float scratch[32];
  const float count = counted_rows(targets, rows, counts, thread_index, threads, lane, simdgroup, simdgroups);
  const float sum =
      threadgroup_sum(added_losses<VEC>(losses, rows, thread_index, threads), scratch, lane, simdgroup, simdgroups);
  if (thread_index == 0) {
    loss[0] = sum / count;
    divisor[0] = count;
  }
}
