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
// of all slices. The state has m and l and not lse, because the rounding of lse would change p by more than p's own
// rounding.
//
//   cross_entropy_forward   state, and the loss if the slice has all classes
//   cross_entropy_fwd_bwd   loss, state and dx, for a g that is the same for all rows
//   cross_entropy_merge     loss and state, from the states of the slices
//   cross_entropy_backward  dx, from m and l
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
//
// In cross_entropy_backward, groups along x share the blocks of a row and groups along y share the rows. A GPU starts
// groups in the order of x, so it accesses the blocks of a row in the order of memory. The rows are processed from last
// to first, because a cache may still hold the last rows from the forward pass. In cross_entropy_merge each thread
// processes whole rows.
//
// Storage is T; products and sums are in float. The order of every sum depends only on the launch geometry, so results
// have the same bits in every run.
//
// Device traffic, in elements of T: forward rows·V; backward 2·rows·V. cross_entropy_fwd_bwd moves 2·rows·V and reads
// all blocks but the last of each thread again. Each of these kernels also reads one target logit per row.

#include "logit_block.h"
#include "rows.h"

// The floats in a row's state: m, l, Σ s and s_t.
constant constexpr int STATE_SIZE = 4;

// Returns a value that all threads need; one lane of each simdgroup reads it.
template <typename V>
inline V read_once(device const V* values, size_t index, uint lane) {
  return simd_broadcast_first(lane == 0 ? values[index] : V(0));
}

// Returns a target as an int. A uint of 2³¹ or more becomes INT_MAX, which is out of range too.
template <typename INDEX_T>
inline int class_of(INDEX_T target) {
  return int(min(target, INDEX_T(INT_MAX)));
}

// Returns the sums over all threads of a group, to every thread. The reductions use `maxima` and `slots` alternately,
// so the barrier of one reduction separates two uses of the other's memory.
template <typename T>
inline RowSums group_sums(
    RowSums own, threadgroup float* maxima, threadgroup float2* slots, uint lane, uint simdgroup, uint simdgroups) {
  const float maximum = threadgroup_max(own.maximum, maxima, lane, simdgroup, simdgroups);
  const float2 sums = threadgroup_sum(
      float2(own.exp_sum * exp_below<T>(own.maximum, maximum), own.score_sum), slots, lane, simdgroup, simdgroups);
  return RowSums{maximum, sums.x, sums.y};
}

// Returns s_t, or 0 if the target is not in the slice.
template <bool CAPPED, typename T>
inline float target_score(device const T* logits, int target, LossOptions options) {
  const uint column = uint(target) - options.first_class;
  return target >= 0 && column < options.width ? capped<CAPPED>(float(logits[column]), options) : 0;
}

// Returns the loss of a row. lse − s is computed as (m − s) + log l, because m − s is exact if m and s are close.
// Without smoothing the mean is not used, because with a logit of −∞ it would make the loss NaN.
inline float row_loss(float target_score, int target, RowSums row, LossOptions options) {
  if (target < 0) {
    return 0;
  }
  if (uint(target) >= options.classes) {
    return NAN;
  }
  const float log_sum = log(row.exp_sum);
  const float lse = row.maximum + log_sum;
  float loss = (1 - options.smoothing) * ((row.maximum - target_score) + log_sum) + options.z_loss * lse * lse;
  if (options.smoothing > 0) {
    loss += options.smoothing * ((row.maximum - row.score_sum / float(options.classes)) + log_sum);
  }
  return loss;
}

// Writes the loss and the state of a row.
inline void write_row(
    float target_score,
    int target,
    RowSums sums,
    device float* losses,
    device float* states,
    size_t row,
    LossOptions options) {
  losses[row] = row_loss(target_score, target, sums, options);
  device float* state = states + row * STATE_SIZE;
  state[0] = sums.maximum;
  state[1] = sums.exp_sum;
  state[2] = sums.score_sum;
  state[3] = target_score;
}

inline RowGradient row_gradient(float cotangent, float maximum, float exp_sum, uint target, LossOptions options) {
  const float g = target < options.classes ? cotangent : NAN;
  const float smoothing_term = options.smoothing / float(options.classes);
  return RowGradient{
      maximum, g * ((1 + 2 * options.z_loss * (maximum + log(exp_sum))) / exp_sum), g * smoothing_term,
      g * (smoothing_term + (1 - options.smoothing)), target - options.first_class};
}

// Computes the loss and the state of every row.
template <
    typename T,
    typename INDEX_T,
    typename HELD_T,
    int VEC,
    int VECS_PER_THREAD,
    int VECS_PER_STEP,
    int INTERLEAVE,
    bool CAPPED>
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
  typedef LogitBlock<T, HELD_T, VEC, VECS_PER_THREAD, VECS_PER_STEP, INTERLEAVE, CAPPED> Block;
  const LossOptions options = LossOptions{width, first_class, classes, smoothing, z_loss, soft_cap};
  threadgroup float maxima[32];
  threadgroup float2 slots[32];
  const bool is_aligned = vec_aligned<VEC>(logits, options.width);
  const size_t stride = size_t(threads) * (VECS_PER_THREAD * VEC);
  const BlockColumns columns = block_columns(Block::first_column(thread_index), stride, options.width);
  Block block;

  const GroupRows own_rows = group_rows(group, groups, rows, threads);
  for (uint row = own_rows.first; row < own_rows.end; row += own_rows.step) {
    device const T* x = logits + size_t(row) * options.width;
    const int target = class_of(read_once(targets, row, lane));
    RowSums sums = RowSums{0, 1, 0};  // the sums of an ignored row, with lse = 0
    if (target >= 0) {
      sums = block.row_sums(x, columns, is_aligned, options);
      sums = group_sums<T>(sums, maxima, slots, lane, simdgroup, simdgroups);
    }
    if (thread_index == 0) {
      write_row(target_score<CAPPED>(x, target, options), target, sums, losses, states, row, options);
    }
  }
}

// Computes the loss, the state and dx of every row, for a cotangent that all rows share.
template <
    typename T,
    typename INDEX_T,
    typename HELD_T,
    int VEC,
    int VECS_PER_THREAD,
    int VECS_PER_STEP,
    int INTERLEAVE,
    bool CAPPED>
[[kernel]] void cross_entropy_fwd_bwd(
    device const T* logits [[buffer(0)]],
    device const INDEX_T* targets [[buffer(1)]],
    constant float& cotangent [[buffer(2)]],
    constant uint& rows [[buffer(3)]],
    constant uint& width [[buffer(4)]],
    constant float& smoothing [[buffer(5)]],
    constant float& z_loss [[buffer(6)]],
    constant float& soft_cap [[buffer(7)]],
    device float* losses [[buffer(8)]],
    device float* states [[buffer(9)]],
    device T* dlogits [[buffer(10)]],
    uint group [[threadgroup_position_in_grid]],
    uint groups [[threadgroups_per_grid]],
    uint thread_index [[thread_position_in_threadgroup]],
    uint threads [[threads_per_threadgroup]],
    uint lane [[thread_index_in_simdgroup]],
    uint simdgroup [[simdgroup_index_in_threadgroup]],
    uint simdgroups [[simdgroups_per_threadgroup]]) {
  typedef LogitBlock<T, HELD_T, VEC, VECS_PER_THREAD, VECS_PER_STEP, INTERLEAVE, CAPPED> Block;
  const LossOptions options = LossOptions{width, 0, width, smoothing, z_loss, soft_cap};
  threadgroup float maxima[32];
  threadgroup float2 slots[32];
  const bool is_aligned = vec_aligned<VEC>(logits, options.width) && vec_aligned<VEC>(dlogits, options.width);
  const size_t stride = size_t(threads) * (VECS_PER_THREAD * VEC);
  const BlockColumns columns = block_columns(Block::first_column(thread_index), stride, options.width);
  Block block;

  const GroupRows own_rows = group_rows(group, groups, rows, threads);
  for (uint row = own_rows.first; row < own_rows.end; row += own_rows.step) {
    device const T* x = logits + size_t(row) * options.width;
    device T* dx = dlogits + size_t(row) * options.width;
    const int target = class_of(read_once(targets, row, lane));
    RowSums sums = RowSums{0, 1, 0};  // the sums of an ignored row, with lse = 0
    if (target >= 0) {
      sums = block.row_sums(x, columns, is_aligned, options);
      sums = group_sums<T>(sums, maxima, slots, lane, simdgroup, simdgroups);
    }
    if (thread_index == 0) {
      write_row(target_score<CAPPED>(x, target, options), target, sums, losses, states, row, options);
    }
    if (target < 0) {
      Block::write_zeros(dx, columns, is_aligned, options.width);
      continue;
    }
    const RowGradient gradient = row_gradient(cotangent, sums.maximum, sums.exp_sum, target, options);
    block.write_gradients_backward(gradient, x, dx, own_rows.step * long(options.width), columns, is_aligned, options);
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
    RowSums sums = RowSums{-MAXFLOAT, 0, 0};
    float target_score = 0;
    for (uint i = 0; i < slice_count; i++) {
      device const float* state = slice_states + (size_t(i) * rows + row) * STATE_SIZE;
      const float maximum = max(sums.maximum, state[0]);
      sums.exp_sum = sums.exp_sum * exp(sums.maximum - maximum) + state[1] * exp(state[0] - maximum);
      sums.maximum = maximum;
      sums.score_sum += state[2];
      target_score += state[3];
    }
    write_row(target_score, target, sums, losses, states, row, options);
  }
}

// Computes dx of the rows rows − 1 − i, for each i in own_rows. Each row has its own cotangent. dlogits may be the
// memory of logits.
template <typename Block, int VEC, typename T, typename INDEX_T>
inline void write_gradients(
    device const T* logits,
    device const INDEX_T* targets,
    device const float* states,
    device const float* cotangents,
    device T* dlogits,
    uint rows,
    LossOptions options,
    BlockColumns columns,
    GroupRows own_rows,
    uint lane) {
  const bool is_aligned = vec_aligned<VEC>(logits, options.width) && vec_aligned<VEC>(dlogits, options.width);
  for (uint i = own_rows.first; i < own_rows.end; i += own_rows.step) {
    const uint row = rows - 1 - i;
    device const T* x = logits + size_t(row) * options.width;
    device T* dx = dlogits + size_t(row) * options.width;
    const int target = class_of(read_once(targets, row, lane));
    const float maximum = read_once(states, STATE_SIZE * size_t(row), lane);
    const float exp_sum = read_once(states, STATE_SIZE * size_t(row) + 1, lane);
    const float cotangent = read_once(cotangents, row, lane);
    if (target < 0) {
      Block::write_zeros(dx, columns, is_aligned, options.width);
      continue;
    }
    const RowGradient gradient = row_gradient(cotangent, maximum, exp_sum, target, options);
    for (size_t begin = columns.first; begin < options.width; begin += columns.stride) {
      const bool is_last = begin == columns.last;
      const long next = is_last ? -long(own_rows.step * options.width + (begin - columns.first)) : long(columns.stride);
      Block block;
      block.load(x + begin, options.width - begin, is_aligned);
      block.write_gradient(gradient, x, dx, begin, next, is_aligned, options);
    }
  }
}

// Writes dx to dlogits.
template <
    typename T,
    typename INDEX_T,
    typename HELD_T,
    int VEC,
    int VECS_PER_THREAD,
    int VECS_PER_STEP,
    int INTERLEAVE,
    bool CAPPED>
[[kernel]] void cross_entropy_backward(
    device const T* logits [[buffer(0)]],
    device const INDEX_T* targets [[buffer(1)]],
    device const float* states [[buffer(2)]],
    device const float* cotangents [[buffer(3)]],
    constant uint& rows [[buffer(4)]],
    constant uint& width [[buffer(5)]],
    constant uint& first_class [[buffer(6)]],
    constant uint& classes [[buffer(7)]],
    constant float& smoothing [[buffer(8)]],
    constant float& z_loss [[buffer(9)]],
    constant float& soft_cap [[buffer(10)]],
    device T* dlogits [[buffer(11)]],
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
      logits, targets, states, cotangents, dlogits, rows, options, columns,
      group_rows(group.y, groups.y, rows, threads.x), lane);
}

// Writes dx to `destination`, which may be logits. MLX's custom kernels cannot write to memory that exists, so it is an
// input. Nodes that read it depend on `written`, an output without content.
template <
    typename T,
    typename INDEX_T,
    typename HELD_T,
    int VEC,
    int VECS_PER_THREAD,
    int VECS_PER_STEP,
    int INTERLEAVE,
    bool CAPPED>
[[kernel]] void cross_entropy_backward_into(
    device const T* logits [[buffer(0)]],
    device const INDEX_T* targets [[buffer(1)]],
    device const float* states [[buffer(2)]],
    device const float* cotangents [[buffer(3)]],
    constant uint& rows [[buffer(4)]],
    constant uint& width [[buffer(5)]],
    constant uint& first_class [[buffer(6)]],
    constant uint& classes [[buffer(7)]],
    constant float& smoothing [[buffer(8)]],
    constant float& z_loss [[buffer(9)]],
    constant float& soft_cap [[buffer(10)]],
    device const T* destination [[buffer(11)]],
    device uint* written [[buffer(12)]],
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
      logits, targets, states, cotangents, (device T*)destination, rows, options, columns,
      group_rows(group.y, groups.y, rows, threads.x), lane);
}
