// The rows of the cross-entropy kernels: loss, state and gradient. See cross_entropy.metal.

#include "logit_block.h"
#include "rows.h"

// The floats in a row's state: m, l, Σ s and, for a slice of the classes, s_t; for all classes, the bits of the target.
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

// Writes the loss and the state of a row. The options tell whether the sums belong to a slice.
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
  state[3] = options.width < options.classes ? target_score : as_type<float>(target);
}

inline RowGradient row_gradient(float cotangent, float maximum, float exp_sum, uint target, LossOptions options) {
  const float g = target < options.classes ? cotangent : NAN;
  const float smoothing_term = options.smoothing / float(options.classes);
  return RowGradient{
      maximum, g * ((1 + 2 * options.z_loss * (maximum + log(exp_sum))) / exp_sum), g * smoothing_term,
      g * (smoothing_term + (1 - options.smoothing)), target - options.first_class};
}

// Adds the state of another slice to the sums and the target's score of a row.
inline void add_state(device const float* state, thread RowSums& sums, thread float& target_score) {
  const float maximum = max(sums.maximum, state[0]);
  sums.exp_sum = sums.exp_sum * exp(sums.maximum - maximum) + state[1] * exp(state[0] - maximum);
  sums.maximum = maximum;
  sums.score_sum += state[2];
  target_score += state[3];
}

// Computes dx of the rows rows − 1 − i, for each i in own_rows. Each row has its own cotangent. dlogits may be the
// memory of logits.
template <typename Block, int VEC, typename T>
inline void write_gradients(
    device const T* logits,
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
    const float maximum = read_once(states, STATE_SIZE * size_t(row), lane);
    const float exp_sum = read_once(states, STATE_SIZE * size_t(row) + 1, lane);
    const int target = as_type<int>(read_once(states, STATE_SIZE * size_t(row) + 3, lane));
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
