// Cross-entropy of rows of logits with their targets: the loss, and its gradient.
//
// For each of N rows of width V, with x the logits, t the target and c the soft-cap, if
// there is one (CAPPED):
//
//   s_j  = x_j, or c·tanh(x_j/c)
//   lse  = log Σ_j exp(s_j) = m + log l,  m = max_j s_j,  l = Σ_j exp(s_j − m)
//   loss = (1−ε)·(lse − s_t) + ε·(lse − mean_j s_j) + ζ·lse²
//
// with the label smoothing ε and the weight ζ of the z-loss. With g the cotangent of
// loss, p_j = exp(s_j − m)/l = ∂lse/∂s_j and tanh' = 1 − tanh²:
//
//   ds_j = g·((1 + 2ζ·lse)·p_j − (1−ε)·[j = t] − ε/V)
//   dx_j = ds_j, or ds_j·(1 − (s_j/c)²)
//
// A row with a negative target is left out: its loss and its gradient are 0. Of a row
// with a target that is not below V both are NaN.
//
// Storage is T; every product and sum is in float. m and l are kept apart where they go
// from one kernel to another: their sum lse, rounded, would be off by more than p is.
// Sums run in an order that the launch alone decides, so results are the same bits
// every time.
//
//   cross_entropy_fwd_bwd   loss and dx, for a g that is the same for all rows
//   cross_entropy_forward   loss
//   cross_entropy_backward  dx, from (m, l) of either
//
// Launch (threads): groups along x of whole simdgroups, at most 32, or of a part of one; a
// group takes rows group, group + groups, …, so any number of groups is right. A thread
// reads R packs of C elements, B packs at once, of which R is a multiple, looks for a larger
// m, and adds to l; then the next R, if the row is wider. The gradient begins with the last
// R packs, which are in registers still, and goes back to those that a cache had no time
// yet to lose.
//
// Device traffic, in elements of T: forward N·V, backward 2·N·V, both at once 2·N·V and
// what lies before the last block of each row once more.

#include "rows.h"

// Loads the pack at a column of a row as it is in memory, which nothing waits for; zeros stand
// for what is beyond the row's end.
template <typename T, int C>
inline Pack<T, C> load(device const T* row, size_t column, size_t width, bool is_packed) {
  Pack<T, C> pack;
  if (C == 1 || is_packed) {
    pack = reinterpret_cast<device const Pack<T, C>*>(row)[column / C];
  } else if (column + C <= width) {
    for (int k = 0; k < C; k++) {
      pack.values[k] = row[column + k];
    }
  } else {
    for (int k = 0; k < C; k++) {
      pack.values[k] = column + k < width ? row[column + k] : T(0);
    }
  }
  return pack;
}

// The values of a pack in V, in which the kernel computes.
template <typename T, int C, typename V>
inline void unpack(thread const Pack<T, C>& pack, thread V* values) {
  for (int k = 0; k < C; k++) {
    values[k] = V(pack.values[k]);
  }
}

// A value that all threads want, which one lane of each simdgroup reads.
template <typename V>
inline V read_once(device const V* values, size_t index, uint lane) {
  return simd_broadcast_first(lane == 0 ? values[index] : V(0));
}

// What the loss of a row is made of: m, l and Σ s.
struct RowSums {
  float maximum;
  float sum;
  float total;
};

// What is the same for all rows.
struct Options {
  size_t width;
  float smoothing;
  float z_loss;
  float soft_cap;
};

// Loads B packs, the first at a column and each a stride on, or as many of them as begin in
// the row. If all do they are asked for at once.
template <int B, typename T, int C>
inline void load_packs(
    device const T* row,
    size_t column,
    size_t stride,
    size_t width,
    bool is_packed,
    thread Pack<T, C>* packs) {
  if (is_packed && column + (B - 1) * stride < width) {
    for (int p = 0; p < B; p++) {
      packs[p] = reinterpret_cast<device const Pack<T, C>*>(row)[(column + p * stride) / C];
    }
  } else {
    for (int p = 0; p < B && column + p * stride < width; p++) {
      packs[p] = load<T, C>(row, column + p * stride, width, is_packed);
    }
  }
}

// What a thread holds of a pack: the logits x, or tanh(x/c); 0 beyond the row's end.
template <int C, bool CAPPED, typename T>
inline void hold_logits(thread const Pack<T, C>& pack, Options options, thread float* held) {
  unpack(pack, held);
  if (CAPPED) {
    for (int k = 0; k < C; k++) {
      held[k] = tanh(held[k] / options.soft_cap);
    }
  }
}

// exp(s − m). For logits of 16 bits by way of 2 to a power, which takes half as long: the power
// is rounded, so that the result is off by |s − m|·2⁻²⁴ of itself.
template <typename T>
inline float exp_below(float s, float maximum) {
  return sizeof(T) == sizeof(float) ? exp(s - maximum) : exp2((s - maximum) * M_LOG2E_F);
}

// s of what a thread holds of a logit.
template <bool CAPPED>
inline float capped(float held, Options options) {
  return CAPPED ? options.soft_cap * held : held;
}

// The sums over the columns of a thread: its pack p begins at first + p·stride. It
// leaves the last R packs, or fewer, in held; beyond the row's end there is −infinity.
template <int C, int R, int B, bool CAPPED, typename T>
inline RowSums thread_sums(
    device const T* row,
    size_t first,
    size_t stride,
    bool is_packed,
    Options options,
    thread float* held) {
  const size_t width = options.width;
  // Not −infinity, from which the distance of another is no number.
  float maximum = -MAXFLOAT;
  float sum = 0;
  float total = 0;
  for (size_t begin = first; begin < width; begin += R * stride) {
    float maxima[C];
    float totals[C] = {};
    for (int k = 0; k < C; k++) {
      maxima[k] = maximum;
    }
    for (int first_pack = 0; first_pack < R && begin + first_pack * stride < width; first_pack += B) {
      Pack<T, C> packs[B];
      load_packs<B>(row, begin + first_pack * stride, stride, width, is_packed, packs);
      for (int p = 0; p < B && begin + (first_pack + p) * stride < width; p++) {
        const size_t column = begin + (first_pack + p) * stride;
        thread float* values = held + (first_pack + p) * C;
        hold_logits<C, CAPPED>(packs[p], options, values);
        for (int k = 0; k < C; k++) {
          totals[k] += capped<CAPPED>(values[k], options);
        }
        if (column + C > width) {
          for (int k = 0; k < C; k++) {
            values[k] = column + k < width ? values[k] : -INFINITY;
          }
        }
        for (int k = 0; k < C; k++) {
          const float s = capped<CAPPED>(values[k], options);
          maxima[k] = s > maxima[k] ? s : maxima[k];
        }
      }
    }
    total += sum_of<C>(totals);
    const float before = maximum;
    for (int k = 0; k < C; k++) {
      maximum = maxima[k] > maximum ? maxima[k] : maximum;
    }
    float sums[C] = {};
    for (int p = 0; p < R && begin + p * stride < width; p++) {
      for (int k = 0; k < C; k++) {
        sums[k] += exp_below<T>(capped<CAPPED>(held[p * C + k], options), maximum);
      }
    }
    sum = sum * exp(before - maximum) + sum_of<C>(sums);
  }
  return RowSums{maximum, sum, total};
}

// The sums of all threads of a group, for every thread. Between two writes of the same
// slots there is the barrier of the others.
inline RowSums group_sums(
    RowSums own,
    threadgroup float* maxima,
    threadgroup float2* slots,
    uint lane,
    uint simdgroup,
    uint simdgroups) {
  const float maximum = threadgroup_max(own.maximum, maxima, lane, simdgroup, simdgroups);
  const float2 sums = threadgroup_sum(
      float2(own.sum * exp(own.maximum - maximum), own.total), slots, lane, simdgroup, simdgroups);
  return RowSums{maximum, sums.x, sums.y};
}

// The loss of a row. The distance of a logit from lse is taken from m first, which is
// exact where they are close. Without smoothing the mean is left alone: there may be a
// logit of −infinity in it.
template <bool CAPPED, typename T>
inline float target_loss(device const T* logits, int target, RowSums row, Options options) {
  if (target < 0) {
    return 0;
  }
  if (size_t(target) >= options.width) {
    return NAN;
  }
  float target_logit;
  const Pack<T, 1> pack = load<T, 1>(logits, target, options.width, false);
  hold_logits<1, CAPPED>(pack, options, &target_logit);
  target_logit = capped<CAPPED>(target_logit, options);
  const float log_sum = log(row.sum);
  const float lse = row.maximum + log_sum;
  float loss = (1 - options.smoothing) * ((row.maximum - target_logit) + log_sum) + options.z_loss * lse * lse;
  if (options.smoothing > 0) {
    loss += options.smoothing * ((row.maximum - row.total / float(options.width)) + log_sum);
  }
  return loss;
}

// How dx of a row comes from its s: the terms of the head of this file that are the
// same for all of its columns.
struct RowGradient {
  float cotangent;
  float maximum;
  float slope; // (1 + 2ζ·lse)/l
  float others; // ε/V
  float hit; // ε/V + (1−ε)
  uint target;
};

inline RowGradient row_gradient(float cotangent, float maximum, float sum, uint target, Options options) {
  const float others = options.smoothing / float(options.width);
  return RowGradient{
      target < options.width ? cotangent : NAN,
      maximum,
      (1 + 2 * options.z_loss * (maximum + log(sum))) / sum,
      others,
      others + (1 - options.smoothing),
      target};
}

// Writes dx of the pack at a column.
template <int C, bool CAPPED, typename T>
inline void write_gradient(
    RowGradient of,
    thread const float* held,
    device T* row,
    size_t column,
    bool is_packed,
    Options options) {
  const int at = int(of.target - uint(column));
  float dx[C];
  for (int k = 0; k < C; k++) {
    const float e = exp_below<T>(capped<CAPPED>(held[k], options), of.maximum);
    dx[k] = of.cotangent * fma(e, of.slope, k == at ? -of.hit : -of.others);
    if (CAPPED) {
      dx[k] *= (1 - held[k]) * (1 + held[k]);
    }
  }
  write<C>(row, column, options.width, is_packed, dx);
}

// The gradient of a row that is left out.
template <int C, typename T>
inline void write_zeros(device T* row, size_t width, size_t first, size_t stride, bool is_packed) {
  float zeros[C] = {};
  for (size_t column = first; column < width; column += stride) {
    write<C>(row, column, width, is_packed, zeros);
  }
}

// The loss and (m, l) of every row.
template <typename T, int C, int R, int B, bool CAPPED>
[[kernel]] void cross_entropy_forward(
    device const T* logits [[buffer(0)]],
    device const int* targets [[buffer(1)]],
    constant uint& rows [[buffer(2)]],
    constant uint& width [[buffer(3)]],
    constant float& smoothing [[buffer(4)]],
    constant float& z_loss [[buffer(5)]],
    constant float& soft_cap [[buffer(6)]],
    device float* losses [[buffer(7)]],
    device float* statistics [[buffer(8)]],
    uint group [[threadgroup_position_in_grid]],
    uint groups [[threadgroups_per_grid]],
    uint thread_index [[thread_position_in_threadgroup]],
    uint threads [[threads_per_threadgroup]],
    uint lane [[thread_index_in_simdgroup]],
    uint simdgroup [[simdgroup_index_in_threadgroup]],
    uint simdgroups [[simdgroups_per_threadgroup]]) {
  const Options options = Options{width, smoothing, z_loss, soft_cap};
  threadgroup float maxima[32];
  threadgroup float2 slots[32];
  const bool is_packed = packed<C>(logits, options.width);
  const size_t first = size_t(thread_index) * C;
  const size_t stride = size_t(threads) * C;
  float held[R * C];

  for (uint row = group; row < rows; row += groups) {
    device const T* x = logits + size_t(row) * options.width;
    const int target = read_once(targets, row, lane);
    RowSums sums = RowSums{0, 1, 0};
    if (target >= 0) {
      sums = group_sums(
          thread_sums<C, R, B, CAPPED>(x, first, stride, is_packed, options, held),
          maxima, slots, lane, simdgroup, simdgroups);
    }
    if (thread_index == 0) {
      losses[row] = target_loss<CAPPED>(x, target, sums, options);
      statistics[2 * size_t(row)] = sums.maximum;
      statistics[2 * size_t(row) + 1] = sums.sum;
    }
  }
}

// The same, and dx for the cotangent that every row has.
template <typename T, int C, int R, int B, bool CAPPED>
[[kernel]] void cross_entropy_fwd_bwd(
    device const T* logits [[buffer(0)]],
    device const int* targets [[buffer(1)]],
    constant float& cotangent [[buffer(2)]],
    constant uint& rows [[buffer(3)]],
    constant uint& width [[buffer(4)]],
    constant float& smoothing [[buffer(5)]],
    constant float& z_loss [[buffer(6)]],
    constant float& soft_cap [[buffer(7)]],
    device float* losses [[buffer(8)]],
    device float* statistics [[buffer(9)]],
    device T* dlogits [[buffer(10)]],
    uint group [[threadgroup_position_in_grid]],
    uint groups [[threadgroups_per_grid]],
    uint thread_index [[thread_position_in_threadgroup]],
    uint threads [[threads_per_threadgroup]],
    uint lane [[thread_index_in_simdgroup]],
    uint simdgroup [[simdgroup_index_in_threadgroup]],
    uint simdgroups [[simdgroups_per_threadgroup]]) {
  const Options options = Options{width, smoothing, z_loss, soft_cap};
  threadgroup float maxima[32];
  threadgroup float2 slots[32];
  const bool is_packed = packed<C>(logits, options.width) && packed<C>(dlogits, options.width);
  const size_t first = size_t(thread_index) * C;
  const size_t stride = size_t(threads) * C;
  // Where the last block of a thread begins.
  const size_t last = first < options.width ? first + (options.width - 1 - first) / (R * stride) * (R * stride) : first;
  float held[R * C];

  for (uint row = group; row < rows; row += groups) {
    device const T* x = logits + size_t(row) * options.width;
    device T* dx = dlogits + size_t(row) * options.width;
    const int target = read_once(targets, row, lane);
    RowSums sums = RowSums{0, 1, 0};
    if (target >= 0) {
      sums = group_sums(
          thread_sums<C, R, B, CAPPED>(x, first, stride, is_packed, options, held),
          maxima, slots, lane, simdgroup, simdgroups);
    }
    if (thread_index == 0) {
      losses[row] = target_loss<CAPPED>(x, target, sums, options);
      statistics[2 * size_t(row)] = sums.maximum;
      statistics[2 * size_t(row) + 1] = sums.sum;
    }
    if (target < 0) {
      write_zeros<C>(dx, options.width, first, stride, is_packed);
      continue;
    }
    const RowGradient of = row_gradient(cotangent, sums.maximum, sums.sum, target, options);
    for (size_t begin = last;; begin -= R * stride) {
      if (begin != last) {
        for (int first_pack = 0; first_pack < R; first_pack += B) {
          Pack<T, C> packs[B];
          load_packs<B>(x, begin + first_pack * stride, stride, options.width, is_packed, packs);
          for (int p = 0; p < B; p++) {
            hold_logits<C, CAPPED>(packs[p], options, held + (first_pack + p) * C);
          }
        }
      }
      for (int p = 0; p < R && begin + p * stride < options.width; p++) {
        write_gradient<C, CAPPED>(of, held + p * C, dx, begin + p * stride, is_packed, options);
      }
      if (begin == first) {
        break;
      }
    }
  }
}

// dx of every row, for its cotangent.
template <typename T, int C, bool CAPPED>
[[kernel]] void cross_entropy_backward(
    device const T* logits [[buffer(0)]],
    device const int* targets [[buffer(1)]],
    device const float* statistics [[buffer(2)]],
    device const float* cotangents [[buffer(3)]],
    constant uint& rows [[buffer(4)]],
    constant uint& width [[buffer(5)]],
    constant float& smoothing [[buffer(6)]],
    constant float& z_loss [[buffer(7)]],
    constant float& soft_cap [[buffer(8)]],
    device T* dlogits [[buffer(9)]],
    uint group [[threadgroup_position_in_grid]],
    uint groups [[threadgroups_per_grid]],
    uint thread_index [[thread_position_in_threadgroup]],
    uint threads [[threads_per_threadgroup]],
    uint lane [[thread_index_in_simdgroup]]) {
  const Options options = Options{width, smoothing, z_loss, soft_cap};
  const bool is_packed = packed<C>(logits, options.width) && packed<C>(dlogits, options.width);
  const size_t first = size_t(thread_index) * C;
  const size_t stride = size_t(threads) * C;
  for (uint row = group; row < rows; row += groups) {
    device const T* x = logits + size_t(row) * options.width;
    device T* dx = dlogits + size_t(row) * options.width;
    const int target = read_once(targets, row, lane);
    if (target < 0) {
      write_zeros<C>(dx, options.width, first, stride, is_packed);
      continue;
    }
    const float maximum = read_once(statistics, 2 * size_t(row), lane);
    const float sum = read_once(statistics, 2 * size_t(row) + 1, lane);
    const RowGradient of = row_gradient(read_once(cotangents, row, lane), maximum, sum, target, options);
    for (size_t column = first; column < options.width; column += stride) {
      float held[C];
      const Pack<T, C> pack = load<T, C>(x, column, options.width, is_packed);
      hold_logits<C, CAPPED>(pack, options, held);
      write_gradient<C, CAPPED>(of, held, dx, column, is_packed, options);
    }
  }
}
