// Cross-entropy kernels whose gradient takes the place of the logits: cross_entropy_fwd_bwd and cross_entropy_backward
// of cross_entropy.metal, which has the formulas and the parameters of the launch.
//
// MLX's custom kernels cannot write to memory that exists, so `destination` is an input. Nodes that read it depend on
// an output. It may be the memory of logits: a thread reads the logits of a block before it writes there, and one
// thread reads the target's logit before all threads of the group synchronize.

#include "cross_entropy.h"

// Computes the loss, the state and dx of every row, for a cotangent of 1, and writes dx to `destination`. If `width` is
// less than `classes`, other_states holds the states of the other classes, and the results include these.
template <
    typename T,
    typename INDEX_T,
    typename HELD_T,
    int VEC,
    int VECS_PER_THREAD,
    int VECS_PER_STEP,
    int INTERLEAVE,
    bool CAPPED>
[[kernel]] void cross_entropy_fwd_bwd_into(
    device const T* logits [[buffer(0)]],
    device const INDEX_T* targets [[buffer(1)]],
    device const float* other_states [[buffer(2)]],
    constant uint& rows [[buffer(3)]],
    constant uint& width [[buffer(4)]],
    constant uint& first_class [[buffer(5)]],
    constant uint& classes [[buffer(6)]],
    constant float& smoothing [[buffer(7)]],
    constant float& z_loss [[buffer(8)]],
    constant float& soft_cap [[buffer(9)]],
    device const T* destination [[buffer(10)]],
    device float* losses [[buffer(11)]],
    device float* states [[buffer(12)]],
    uint group [[threadgroup_position_in_grid]],
    uint groups [[threadgroups_per_grid]],
    uint thread_index [[thread_position_in_threadgroup]],
    uint threads [[threads_per_threadgroup]],
    uint lane [[thread_index_in_simdgroup]],
    uint simdgroup [[simdgroup_index_in_threadgroup]],
    uint simdgroups [[simdgroups_per_threadgroup]]) {
  typedef LogitBlock<T, HELD_T, VEC, VECS_PER_THREAD, VECS_PER_STEP, INTERLEAVE, CAPPED> Block;
  const LossOptions options = LossOptions{width, first_class, classes, smoothing, z_loss, soft_cap};
  const LossOptions all = LossOptions{classes, 0, classes, smoothing, z_loss, soft_cap};
  threadgroup float maxima[32];
  threadgroup float2 slots[32];
  const bool is_aligned = vec_aligned<VEC>(logits, options.width) && vec_aligned<VEC>(destination, options.width);
  const size_t stride = size_t(threads) * (VECS_PER_THREAD * VEC);
  const BlockColumns columns = block_columns(Block::first_column(thread_index), stride, options.width);
  Block block;

  const GroupRows own_rows = group_rows(group, groups, rows, threads);
  for (uint row = own_rows.first; row < own_rows.end; row += own_rows.step) {
    device const T* x = logits + size_t(row) * options.width;
    device T* dx = (device T*)destination + size_t(row) * options.width;
    const int target = class_of(read_once(targets, row, lane));
    float score = thread_index == 0 ? target_score<CAPPED>(x, target, options) : 0;
    if (target < 0) {
      Block::write_zeros(dx, columns, is_aligned, options.width);
      if (thread_index == 0) {
        write_row(score, target, RowSums{0, 1, 0}, losses, states, row, all);
      }
      continue;
    }
    RowSums sums = block.row_sums(x, columns, is_aligned, options);
    sums = group_sums<T>(sums, maxima, slots, lane, simdgroup, simdgroups);
    if (options.width < options.classes) {
      add_state(other_states + size_t(row) * STATE_SIZE, sums, score);
    }
    if (thread_index == 0) {
      write_row(score, target, sums, losses, states, row, all);
    }
    const RowGradient gradient = row_gradient(1, sums.maximum, sums.exp_sum, target, options);
    block.write_gradients_backward(gradient, x, dx, own_rows.step * long(options.width), columns, is_aligned, options);
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
  typedef LogitBlock<T, HELD_T, VEC, VECS_PER_THREAD, VECS_PER_STEP, INTERLEAVE, CAPPED> Block;
  const LossOptions options = LossOptions{width, first_class, classes, smoothing, z_loss, soft_cap};
  const size_t block_size = size_t(threads.x) * (VECS_PER_THREAD * VEC);
  const size_t first = group.x * block_size + Block::first_column(thread_index);
  const BlockColumns columns = block_columns(first, groups.x * block_size, options.width);
  write_gradients<Block, VEC>(
      logits, states, cotangents, (device T*)destination, rows, options, columns,
      group_rows(group.y, groups.y, rows, threads.x), lane);
}
