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
// loss and p_j = exp(s_j − m)/l = ∂lse/∂s_j:
//
//   ds_j = g·((1 + 2ζ·lse)·p_j − (1−ε)·[j = t] − ε/V)
//   dx_j = ds_j, or ds_j·sech²(x_j/c)
//
// Targets are I, int or uint. A row with a negative target is left out: its loss and its gradient are 0. Of a row
// with a target that is not below V both are NaN.
//
// Storage is T; every product and sum is in float. m and l are kept apart where they go
// from one kernel to another: their sum lse, rounded, would be off by more than p is.
//
// A kernel may be given a slice of the columns, those of the classes from first_class on; V is the
// number of all classes still. What a slice says of a row is the state (m, l, Σ_j s_j, s_t), with 0 for
// s_t where t is not in the slice; the states of all slices are merged.
//
// Sums run in an order that the launch alone decides, so results are the same bits
// every time.
//
//   cross_entropy_fwd_bwd   loss, state and dx, for a g that is the same for all rows
//   cross_entropy_forward   state, and the loss if a slice is all there is
//   cross_entropy_merge     loss and state, from the states of slices
//   cross_entropy_backward  dx, from (m, l)
//
// Launch (threads): groups along x of at most 32 whole simdgroups, or of a part of one, and of a
// multiple of L threads; a group takes rows group, group + groups, …, so any number of groups is
// right. A thread holds a block of R packs of C elements, which are all asked for at once, and
// takes B at a time, of which R is a multiple: it looks for a larger m, and adds to l; then the
// next block, if the row is wider. Of a block the L threads beside each other have every L-th
// pack. The gradient begins with the last block, which is held still, and goes back to those that
// a cache had no time yet to lose. The groups of cross_entropy_backward share the rows along y, and
// their blocks along x, in the order of memory, in which a GPU begins groups; but the last row, which
// a cache may have kept from the loss, is the first.
//
// Device traffic, in elements of T: forward N·V, backward 2·N·V, both at once 2·N·V and
// what lies before the last block of each row once more; and a target's logit of each row.

#include "rows.h"
#include "soft_cap.h"

// A value that all threads want, which one lane of each simdgroup reads.
template <typename V>
inline V read_once(device const V* values, size_t index, uint lane) {
  return simd_broadcast_first(lane == 0 ? values[index] : V(0));
}

// A target as an int: one of 2³¹ and more is not below a width either.
template <typename I>
inline int class_of(I target) {
  return int(min(target, I(INT_MAX)));
}

// What the loss of a row is made of: m, l and Σ s.
struct RowSums {
  float maximum;
  float sum;
  float total;
};

// A row of what goes from one kernel to another: m, l, Σ s and s_t.
constant constexpr int STATE_SIZE = 4;

// What is the same for all rows.
struct Options {
  size_t width;
  uint first_class;
  uint classes;
  float smoothing;
  float z_loss;
  float soft_cap;
};

// Where the first block of a thread begins: L threads beside each other have R·L packs of C
// columns, one after the other, and each every L-th of them.
template <int C, int R, int L>
inline size_t first_column(uint thread_index) {
  return (size_t(thread_index / L) * (R * L) + thread_index % L) * C;
}

// s of a logit x.
template <bool CAPPED>
inline float capped(float x, Options options) {
  return CAPPED ? options.soft_cap * tanh(x / options.soft_cap) : x;
}

// exp(s − m), off by |s − m|·2⁻²⁴ of itself where a GPU has 2 to a power as one instruction. For
// logits of 16 bits it is that everywhere, since it takes a CPU half as long.
template <typename T>
inline float exp_below(float s, float maximum) {
  return sizeof(T) == sizeof(float) ? fast::exp(s - maximum) : fast::exp2((s - maximum) * M_LOG2E_F);
}

// Holds a block of a row, of which so many elements are left. Beyond the row's end there is
// −infinity, as far as B packs begin before it.
template <typename T, typename H, int C, int R, int B, int L>
inline void hold_block(device const T* block, uint left, bool is_packed, thread HeldPacks<H, C, R>& held) {
  if (is_packed && (R - 1) * L * C < left) {
    for (int p = 0; p < R; p++) {
      hold_pack(block, p, p * L * C, left, held);
    }
    return;
  }
  for (int p = 0; p < R && uint(p / B * B * L * C) < left; p++) {
    const uint column = p * L * C;
    if (is_packed && column < left) {
      hold_pack(block, p, column, left, held);
      continue;
    }
    for (int k = 0; k < C; k++) {
      reinterpret_cast<thread H*>(held.packs[p].values)[k] =
          column + k < left ? H(block[column + k]) : H(-INFINITY);
    }
  }
}

// Element k of a held pack.
template <typename H, typename W>
inline float held_value(thread const W& pack, int k) {
  return float(reinterpret_cast<thread const H*>(pack.values)[k]);
}

// Returns s of element k of pack p of a held block, or −∞ at and beyond the row's end, `left` elements from
// the block's first.
template <int L, bool CAPPED, typename H, int C, int R>
inline float score(thread const HeldPacks<H, C, R>& held, int p, int k, uint left, Options options) {
  const float s = capped<CAPPED>(held_value<H>(held.packs[p], k), options);
  return CAPPED && uint(p * L * C + k) >= left ? -INFINITY : s;
}

// The largest of the C values, a power of two.
template <int C>
inline float max_of(thread const float* values) {
  float maxima[C];
  for (int k = 0; k < C; k++) {
    maxima[k] = values[k];
  }
  for (int n = C / 2; n > 0; n /= 2) {
    for (int k = 0; k < n; k++) {
      maxima[k] = max(maxima[k], maxima[k + n]);
    }
  }
  return maxima[0];
}

// The sums over the columns of a thread, whose blocks begin at first and every stride. It
// leaves the last block in held.
template <typename T, typename H, int C, int R, int B, int L, bool CAPPED>
inline RowSums thread_sums(
    device const T* row, size_t first, size_t stride, bool is_packed, Options options, thread HeldPacks<H, C, R>& held) {
  // Not −infinity, from which the distance of another is no number.
  float maximum = -MAXFLOAT;
  float sum = 0;
  float total = 0;
  for (size_t begin = first; begin < options.width; begin += stride) {
    const uint left = options.width - begin;
    hold_block<T, H, C, R, B, L>(row + begin, left, is_packed, held);
    float totals[C] = {};
    // B packs at a time, while others may be on their way.
    for (int first_pack = 0; first_pack < R && uint(first_pack * L * C) < left; first_pack += B) {
      const float before = maximum;
      float maxima[C], sums[C] = {};
      for (int k = 0; k < C; k++) {
        maxima[k] = held_value<H>(held.packs[first_pack], k);
      }
      for (int p = first_pack + 1; p < first_pack + B; p++) {
        for (int k = 0; k < C; k++) {
          maxima[k] = max(maxima[k], held_value<H>(held.packs[p], k));
        }
      }
      maximum = max(maximum, capped<CAPPED>(max_of<C>(maxima), options));
      for (int p = first_pack; p < first_pack + B; p++) {
        float scores[C];
        for (int k = 0; k < C; k++) {
          scores[k] = score<L, CAPPED>(held, p, k, left, options);
          sums[k] += exp_below<T>(scores[k], maximum);
        }
        for (int k = 0; options.smoothing > 0 && k < C; k++) {
          totals[k] += uint(p * L * C + k) < left ? scores[k] : 0.0f;
        }
      }
      sum = fma(sum, exp_below<T>(before, maximum), sum_of<C>(sums));
    }
    total += sum_of<C>(totals);
  }
  return RowSums{maximum, sum, total};
}

// The sums of all threads of a group, for every thread. Between two writes of the same
// slots there is the barrier of the others.
template <typename T>
inline RowSums group_sums(
    RowSums own,
    threadgroup float* maxima,
    threadgroup float2* slots,
    uint lane,
    uint simdgroup,
    uint simdgroups) {
  const float maximum = threadgroup_max(own.maximum, maxima, lane, simdgroup, simdgroups);
  const float2 sums = threadgroup_sum(
      float2(own.sum * exp_below<T>(own.maximum, maximum), own.total), slots, lane, simdgroup, simdgroups);
  return RowSums{maximum, sums.x, sums.y};
}

// The logit of a row's target, as s, or 0 where it is not in the slice.
template <bool CAPPED, typename T>
inline float target_logit(device const T* logits, int target, Options options) {
  const uint column = uint(target) - options.first_class;
  return target >= 0 && column < options.width ? capped<CAPPED>(float(logits[column]), options) : 0;
}

// The loss of a row. The distance of a logit from lse is taken from m first, which is
// exact where they are close. Without smoothing the mean is left alone: there may be a
// logit of −infinity in it.
inline float target_loss(float s, int target, RowSums row, Options options) {
  if (target < 0) {
    return 0;
  }
  if (uint(target) >= options.classes) {
    return NAN;
  }
  const float log_sum = log(row.sum);
  const float lse = row.maximum + log_sum;
  float loss = (1 - options.smoothing) * ((row.maximum - s) + log_sum) + options.z_loss * lse * lse;
  if (options.smoothing > 0) {
    loss += options.smoothing * ((row.maximum - row.total / float(options.classes)) + log_sum);
  }
  return loss;
}

// Writes the loss and the state of a row.
inline void write_row(
    float s, int target, RowSums sums, device float* losses, device float* states, size_t row, Options options) {
  losses[row] = target_loss(s, target, sums, options);
  device float* state = states + row * STATE_SIZE;
  state[0] = sums.maximum;
  state[1] = sums.sum;
  state[2] = sums.total;
  state[3] = s;
}

// How dx of a row comes from its s: the terms of the head of this file that are the
// same for all of its columns.
struct RowGradient {
  float maximum;
  float slope; // g·(1 + 2ζ·lse)/l
  float others; // g·ε/V
  float hit; // g·(ε/V + (1−ε)), at the target
  uint target; // its column, if it is in the slice
};

inline RowGradient row_gradient(float cotangent, float maximum, float sum, uint target, Options options) {
  const float g = target < options.classes ? cotangent : NAN;
  const float others = options.smoothing / float(options.classes);
  return RowGradient{
      maximum,
      g * ((1 + 2 * options.z_loss * (maximum + log(sum))) / sum),
      g * others,
      g * (others + (1 - options.smoothing)),
      target - options.first_class};
}

// ds of a column, from its s.
template <typename T>
inline float score_gradient(float s, RowGradient of, float subtracted) {
  return fma(exp_below<T>(s, of.maximum), of.slope, -subtracted);
}

// ds/dx of a logit x.
template <bool CAPPED>
inline float cap_slope(float x, Options options) {
  return CAPPED ? tanh_slope(x / options.soft_cap) : 1.0f;
}

// Writes dx of the held pack at a column.
template <typename T, typename H, int C, bool CAPPED, typename W>
inline void write_gradient(
    RowGradient of, thread const W& held, device T* dx, size_t column, bool is_packed, Options options) {
  float values[C];
  for (int k = 0; k < C; k++) {
    const float x = held_value<H>(held, k);
    values[k] = score_gradient<T>(capped<CAPPED>(x, options), of, of.others) * cap_slope<CAPPED>(x, options);
  }
  write<C>(dx, column, options.width, is_packed, values);
}

// Writes dx of a held block, which begins at a column, as far as it is in the row.
template <typename T, typename H, int C, int R, int L, bool CAPPED>
inline void write_gradients(
    RowGradient of,
    thread const HeldPacks<H, C, R>& held,
    device const T* x,
    device T* dx,
    size_t begin,
    bool is_packed,
    Options options) {
  const uint left = options.width - begin;
  if (is_packed && (R - 1) * L * C < left) {
    for (int p = 0; p < R; p++) {
      write_gradient<T, H, C, CAPPED>(of, held.packs[p], dx, begin + p * L * C, true, options);
    }
  } else {
    for (int p = 0; p < R && uint(p * L * C) < left; p++) {
      write_gradient<T, H, C, CAPPED>(of, held.packs[p], dx, begin + p * L * C, is_packed, options);
    }
  }
  // The target's is another; to look for it in each pack would take longer.
  const uint at = of.target - uint(begin);
  if (at < uint(R * L * C) && at % (L * C) < uint(C) && of.target < options.width) {
    const float hit = float(x[of.target]);
    dx[of.target] = T(score_gradient<T>(capped<CAPPED>(hit, options), of, of.hit) * cap_slope<CAPPED>(hit, options));
  }
}

// dx of a row that is left out.
template <int C, int R, int L, typename T>
inline void write_zeros(device T* row, size_t width, size_t first, size_t stride, bool is_packed) {
  float zeros[C] = {};
  for (size_t begin = first; begin < width; begin += stride) {
    for (int p = 0; p < R && begin + p * L * C < width; p++) {
      write<C>(row, begin + p * L * C, width, is_packed, zeros);
    }
  }
}

// The loss and the state of every row.
template <typename T, typename I, typename H, int C, int R, int B, int L, bool CAPPED>
[[kernel]] void cross_entropy_forward(
    device const T* logits [[buffer(0)]],
    device const I* targets [[buffer(1)]],
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
  const Options options = Options{width, first_class, classes, smoothing, z_loss, soft_cap};
  threadgroup float maxima[32];
  threadgroup float2 slots[32];
  const bool is_packed = packed<C>(logits, options.width);
  const size_t first = first_column<C, R, L>(thread_index);
  const size_t stride = size_t(threads) * (R * C);
  HeldPacks<H, C, R> held;

  for (uint row = group; row < rows; row += groups) {
    device const T* x = logits + size_t(row) * options.width;
    const int target = class_of(read_once(targets, row, lane));
    RowSums sums = RowSums{0, 1, 0};
    if (target >= 0) {
      sums = group_sums<T>(
          thread_sums<T, H, C, R, B, L, CAPPED>(x, first, stride, is_packed, options, held),
          maxima, slots, lane, simdgroup, simdgroups);
    }
    if (thread_index == 0) {
      write_row(target_logit<CAPPED>(x, target, options), target, sums, losses, states, row, options);
    }
  }
}

// The same, and dx for the cotangent that every row has.
template <typename T, typename I, typename H, int C, int R, int B, int L, bool CAPPED>
[[kernel]] void cross_entropy_fwd_bwd(
    device const T* logits [[buffer(0)]],
    device const I* targets [[buffer(1)]],
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
  const Options options = Options{width, 0, width, smoothing, z_loss, soft_cap};
  threadgroup float maxima[32];
  threadgroup float2 slots[32];
  const bool is_packed = packed<C>(logits, options.width) && packed<C>(dlogits, options.width);
  const size_t first = first_column<C, R, L>(thread_index);
  const size_t stride = size_t(threads) * (R * C);
  // Where the last block of a thread begins.
  const size_t last = first < options.width ? first + (options.width - 1 - first) / stride * stride : first;
  HeldPacks<H, C, R> held;

  for (uint row = group; row < rows; row += groups) {
    device const T* x = logits + size_t(row) * options.width;
    device T* dx = dlogits + size_t(row) * options.width;
    const int target = class_of(read_once(targets, row, lane));
    RowSums sums = RowSums{0, 1, 0};
    if (target >= 0) {
      sums = group_sums<T>(
          thread_sums<T, H, C, R, B, L, CAPPED>(x, first, stride, is_packed, options, held),
          maxima, slots, lane, simdgroup, simdgroups);
    }
    if (thread_index == 0) {
      write_row(target_logit<CAPPED>(x, target, options), target, sums, losses, states, row, options);
    }
    if (target < 0) {
      write_zeros<C, R, L>(dx, options.width, first, stride, is_packed);
      continue;
    }
    const RowGradient of = row_gradient(cotangent, sums.maximum, sums.sum, target, options);
    for (size_t begin = last; first < options.width; begin -= stride) {
      if (begin != last) {
        hold_block<T, H, C, R, B, L>(x + begin, options.width - begin, is_packed, held);
      }
      write_gradients<T, H, C, R, L, CAPPED>(of, held, x, dx, begin, is_packed, options);
      if (begin == first) {
        break;
      }
    }
  }
}

// The loss and the state of every row, from the states of slices of its columns, which lie one
// after the other. Each thread takes rows on its own, every so many.
template <typename I>
[[kernel]] void cross_entropy_merge(
    device const float* slices [[buffer(0)]],
    device const I* targets [[buffer(1)]],
    constant uint& rows [[buffer(2)]],
    constant uint& count [[buffer(3)]],
    constant uint& classes [[buffer(4)]],
    constant float& smoothing [[buffer(5)]],
    constant float& z_loss [[buffer(6)]],
    device float* losses [[buffer(7)]],
    device float* states [[buffer(8)]],
    uint thread_index [[thread_position_in_grid]],
    uint threads [[threads_per_grid]]) {
  const Options options = Options{classes, 0, classes, smoothing, z_loss, 0};
  for (size_t row = thread_index; row < rows; row += threads) {
    const int target = class_of(targets[row]);
    RowSums sums = RowSums{-MAXFLOAT, 0, 0};
    float s = 0;
    for (uint b = 0; b < count; b++) {
      device const float* state = slices + (size_t(b) * rows + row) * STATE_SIZE;
      const float maximum = max(sums.maximum, state[0]);
      sums.sum = sums.sum * exp(sums.maximum - maximum) + state[1] * exp(state[0] - maximum);
      sums.maximum = maximum;
      sums.total += state[2];
      s += state[3];
    }
    write_row(s, target, sums, losses, states, row, options);
  }
}

// dx of every row, for its cotangent.
template <typename T, typename I, typename H, int C, int R, int B, int L, bool CAPPED>
[[kernel]] void cross_entropy_backward(
    device const T* logits [[buffer(0)]],
    device const I* targets [[buffer(1)]],
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
  const Options options = Options{width, first_class, classes, smoothing, z_loss, soft_cap};
  const bool is_packed = packed<C>(logits, options.width) && packed<C>(dlogits, options.width);
  const size_t block = size_t(threads.x) * (R * C);
  const size_t first = group.x * block + first_column<C, R, L>(thread_index);
  const size_t stride = groups.x * block;
  for (uint i = group.y; i < rows; i += groups.y) {
    const uint row = rows - 1 - i;
    device const T* x = logits + size_t(row) * options.width;
    device T* dx = dlogits + size_t(row) * options.width;
    const int target = class_of(read_once(targets, row, lane));
    const float maximum = read_once(states, STATE_SIZE * size_t(row), lane);
    const float sum = read_once(states, STATE_SIZE * size_t(row) + 1, lane);
    const float cotangent = read_once(cotangents, row, lane);
    if (target < 0) {
      write_zeros<C, R, L>(dx, options.width, first, stride, is_packed);
      continue;
    }
    const RowGradient of = row_gradient(cotangent, maximum, sum, target, options);
    for (size_t begin = first; begin < options.width; begin += stride) {
      HeldPacks<H, C, R> held;
      hold_block<T, H, C, R, B, L>(x + begin, options.width - begin, is_packed, held);
      write_gradients<T, H, C, R, L, CAPPED>(of, held, x, dx, begin, is_packed, options);
    }
  }
}
