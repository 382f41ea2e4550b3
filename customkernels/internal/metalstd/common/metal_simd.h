// Barriers, and functions of simdgroups and quadgroups. They call functions of namespace mlxg in metal_lanes.h, which
// host and CUDA implement differently.
#ifndef METAL_SIMD_H
#define METAL_SIMD_H

#include "metal_lanes.h"

namespace metal {

// ---- barriers ----

enum class mem_flags : uint32_t {
  mem_none = 0,
  mem_device = 1,
  mem_threadgroup = 2,
  mem_texture = 4,
  mem_threadgroup_imageblock = 8,
  mem_object_data = 16,
};
MLXG_INLINE constexpr mem_flags operator|(mem_flags a, mem_flags b) {
  return mem_flags(uint32_t(a) | uint32_t(b));
}
MLXG_INLINE constexpr mem_flags operator&(mem_flags a, mem_flags b) {
  return mem_flags(uint32_t(a) & uint32_t(b));
}

enum memory_order {
  memory_order_relaxed = 0,
  memory_order_acquire = 2,
  memory_order_release = 3,
  memory_order_acq_rel = 4,
  memory_order_seq_cst = 5,
};
enum thread_scope {
  thread_scope_thread,
  thread_scope_simdgroup,
  thread_scope_threadgroup,
  thread_scope_device,
};

// Waits for all threads of the threadgroup that have not ended.
template <class Scope = thread_scope>
MLXG_INLINE void threadgroup_barrier(mem_flags flags, Scope = thread_scope_threadgroup, MLXG_LINE) {
  mlxg::wait_threadgroup<Scope>(uint32_t(flags), line);
}

// Waits for the active lanes of the simdgroup.
template <int = 0>
MLXG_INLINE void simdgroup_barrier(mem_flags flags, thread_scope = thread_scope_simdgroup, MLXG_LINE) {
  mlxg::wait_simdgroup(uint32_t(flags), line);
}

// ---- simdgroup and quadgroup functions ----

#define MLXG_REDUCE(NAME, OP)                                  \
  template <class T>                                           \
  MLXG_INLINE T simd_##NAME(T data, MLXG_LINE) {               \
    return mlxg::reduction<T, mlxg::OP>::run(data, line);      \
  }                                                            \
  template <class T>                                           \
  MLXG_INLINE T quad_##NAME(T data, MLXG_LINE) {               \
    return mlxg::quad_reduction<T, mlxg::OP>::run(data, line); \
  }
MLXG_REDUCE(sum, op_sum)
MLXG_REDUCE(product, op_product)
MLXG_REDUCE(min, op_min)
MLXG_REDUCE(max, op_max)
MLXG_REDUCE(and, op_and)
MLXG_REDUCE(or, op_or)
MLXG_REDUCE(xor, op_xor)
#undef MLXG_REDUCE

#define MLXG_SCAN(NAME, OP, INCLUSIVE)                              \
  template <class T>                                                \
  MLXG_INLINE T simd_prefix_##NAME(T data, MLXG_LINE) {             \
    return mlxg::scan<T, mlxg::OP, INCLUSIVE, 32>::run(data, line); \
  }                                                                 \
  template <class T>                                                \
  MLXG_INLINE T quad_prefix_##NAME(T data, MLXG_LINE) {             \
    return mlxg::scan<T, mlxg::OP, INCLUSIVE, 4>::run(data, line);  \
  }
MLXG_SCAN(inclusive_sum, op_sum, true)
MLXG_SCAN(exclusive_sum, op_sum, false)
MLXG_SCAN(inclusive_product, op_product, true)
MLXG_SCAN(exclusive_product, op_product, false)
#undef MLXG_SCAN

template <class T>
MLXG_INLINE T simd_shuffle(T data, ushort lane, MLXG_LINE) {
  return mlxg::shuffle<T>::run({}, data, lane, line);
}
template <class T>
MLXG_INLINE T simd_broadcast(T data, ushort lane, MLXG_LINE) {
  mlxg::uniform(lane, 32);
  return mlxg::shuffle<T>::run({}, data, lane, line);
}
template <class T>
MLXG_INLINE T simd_shuffle_xor(T data, ushort mask, MLXG_LINE) {
  mlxg::uniform(mask, 32);
  const mlxg::self me;
  return mlxg::shuffle<T>::run(me, data, me.lane() ^ mask, line);
}
// A lane whose source is outside the simdgroup keeps its own value.
template <class T>
MLXG_INLINE T simd_shuffle_down(T data, ushort delta, MLXG_LINE) {
  mlxg::uniform(delta, 32);
  const mlxg::self me;
  const uint32_t from = me.lane() + delta;
  return mlxg::shuffle<T>::run(me, data, from < 32 ? from : me.lane(), line);
}
template <class T>
MLXG_INLINE T simd_shuffle_up(T data, ushort delta, MLXG_LINE) {
  mlxg::uniform(delta, 32);
  const mlxg::self me;
  return mlxg::shuffle<T>::run(me, data, me.lane() >= delta ? me.lane() - delta : me.lane(), line);
}
template <class T>
MLXG_INLINE T simd_shuffle_rotate_down(T data, ushort delta, MLXG_LINE) {
  mlxg::uniform(delta, 32);
  const mlxg::self me;
  return mlxg::shuffle<T>::run(me, data, (me.lane() + delta) % 32, line);
}
template <class T>
MLXG_INLINE T simd_shuffle_rotate_up(T data, ushort delta, MLXG_LINE) {
  mlxg::uniform(delta, 32);
  const mlxg::self me;
  return mlxg::shuffle<T>::run(me, data, (me.lane() - delta) % 32, line);
}
template <class T>
MLXG_INLINE T simd_broadcast_first(T data, MLXG_LINE) {
  return mlxg::broadcast_first<T, 32>::run(data, line);
}
template <class T>
MLXG_INLINE T quad_broadcast_first(T data, MLXG_LINE) {
  return mlxg::broadcast_first<T, 4>::run(data, line);
}

namespace detail {
// Shuffles within groups of `modulo` lanes. A source outside the group is taken from `fill` instead, with wrap-around.
template <class T>
MLXG_INLINE T shuffle_fill(T data, T fill, int delta, uint32_t modulo, mlxg::line line) {
  const mlxg::self me;
  const int lane = int(me.lane() % modulo);
  const int from = lane + delta;
  const bool inside = from >= 0 && from < int(modulo);
  const uint32_t base = me.lane() - uint32_t(lane);
  const uint32_t source = base + (uint32_t(from) & (modulo - 1));
  const T a = mlxg::shuffle<T>::run(me, data, source, line);
  const T b = mlxg::shuffle<T>::run(me, fill, source, line);
  return inside ? a : b;
}
}  // namespace detail
template <class T>
MLXG_INLINE T simd_shuffle_and_fill_down(T data, T fill, ushort delta, MLXG_LINE) {
  mlxg::uniform(delta, 32);
  return detail::shuffle_fill(data, fill, delta, 32, line);
}
template <class T>
MLXG_INLINE T simd_shuffle_and_fill_down(T data, T fill, ushort delta, ushort modulo, MLXG_LINE) {
  mlxg::uniform(delta, 32);
  return detail::shuffle_fill(data, fill, delta, modulo, line);
}
template <class T>
MLXG_INLINE T simd_shuffle_and_fill_up(T data, T fill, ushort delta, MLXG_LINE) {
  mlxg::uniform(delta, 32);
  return detail::shuffle_fill(data, fill, -int(delta), 32, line);
}
template <class T>
MLXG_INLINE T simd_shuffle_and_fill_up(T data, T fill, ushort delta, ushort modulo, MLXG_LINE) {
  mlxg::uniform(delta, 32);
  return detail::shuffle_fill(data, fill, -int(delta), modulo, line);
}

namespace detail {
// The value of lane `to` modulo 4 of the quadgroup.
template <class T>
MLXG_INLINE T quad_shuffle_to(const mlxg::self& me, T data, uint32_t to, mlxg::line line) {
  return mlxg::shuffle<T>::run(me, data, (me.lane() & ~3u) | (to & 3u), line);
}
// The value of lane `from` of the quadgroup. An index of 4 or more becomes a lane outside the simdgroup, which the
// checker reports.
template <class T>
MLXG_INLINE T quad_shuffle_from(const mlxg::self& me, T data, uint32_t from, mlxg::line line) {
  return mlxg::shuffle<T>::run(me, data, from < 4 ? (me.lane() & ~3u) | from : 32 + from, line);
}
}  // namespace detail
template <class T>
MLXG_INLINE T quad_shuffle(T data, ushort lane, MLXG_LINE) {
  return detail::quad_shuffle_from({}, data, lane, line);
}
template <class T>
MLXG_INLINE T quad_broadcast(T data, ushort lane, MLXG_LINE) {
  mlxg::uniform(lane, 4);
  return detail::quad_shuffle_from({}, data, lane, line);
}
template <class T>
MLXG_INLINE T quad_shuffle_xor(T data, ushort mask, MLXG_LINE) {
  mlxg::uniform(mask, 4);
  const mlxg::self me;
  return detail::quad_shuffle_from(me, data, me.lane() % 4 ^ mask, line);
}
template <class T>
MLXG_INLINE T quad_shuffle_down(T data, ushort delta, MLXG_LINE) {
  mlxg::uniform(delta, 4);
  const mlxg::self me;
  const uint32_t to = me.lane() % 4 + delta;
  return detail::quad_shuffle_to(me, data, to < 4 ? to : me.lane(), line);
}
template <class T>
MLXG_INLINE T quad_shuffle_up(T data, ushort delta, MLXG_LINE) {
  mlxg::uniform(delta, 4);
  const mlxg::self me;
  const uint32_t at = me.lane() % 4;
  return detail::quad_shuffle_to(me, data, at >= delta ? at - delta : at, line);
}
template <class T>
MLXG_INLINE T quad_shuffle_rotate_down(T data, ushort delta, MLXG_LINE) {
  mlxg::uniform(delta, 4);
  const mlxg::self me;
  return detail::quad_shuffle_to(me, data, me.lane() + delta, line);
}
template <class T>
MLXG_INLINE T quad_shuffle_rotate_up(T data, ushort delta, MLXG_LINE) {
  mlxg::uniform(delta, 4);
  const mlxg::self me;
  return detail::quad_shuffle_to(me, data, me.lane() - delta, line);
}
template <class T>
MLXG_INLINE T quad_shuffle_and_fill_down(T data, T fill, ushort delta, MLXG_LINE) {
  mlxg::uniform(delta, 4);
  return detail::shuffle_fill(data, fill, delta, 4, line);
}
template <class T>
MLXG_INLINE T quad_shuffle_and_fill_up(T data, T fill, ushort delta, MLXG_LINE) {
  mlxg::uniform(delta, 4);
  return detail::shuffle_fill(data, fill, -int(delta), 4, line);
}

// The votes of lanes, one bit for each.
class simd_vote {
  uint64_t lanes_, active_;

 public:
  using vote_t = uint64_t;
  MLXG_INLINE explicit simd_vote(vote_t lanes = 0, vote_t active = 0xffffffffu) : lanes_(lanes), active_(active) {}
  MLXG_INLINE explicit operator vote_t() const { return lanes_; }
  MLXG_INLINE bool all() const { return (lanes_ & active_) == active_; }
  MLXG_INLINE bool any() const { return lanes_ != 0; }
};
class quad_vote {
  uint32_t lanes_, active_;

 public:
  using vote_t = uint32_t;
  MLXG_INLINE explicit quad_vote(vote_t lanes = 0, vote_t active = 15) : lanes_(lanes), active_(active) {}
  MLXG_INLINE explicit operator vote_t() const { return lanes_; }
  MLXG_INLINE bool all() const { return (lanes_ & active_) == active_; }
  MLXG_INLINE bool any() const { return lanes_ != 0; }
};

namespace detail {
// The votes of one quadgroup.
MLXG_INLINE mlxg::vote_result quad_part(mlxg::vote_result v, uint32_t lane) {
  return {v.yes >> (lane & ~3u) & 15u, v.active >> (lane & ~3u) & 15u};
}
}  // namespace detail

template <int = 0>
MLXG_INLINE simd_vote simd_ballot(bool v, MLXG_LINE) {
  const auto r = mlxg::vote<>::run(v, line);
  return simd_vote(r.yes, r.active);
}
template <int = 0>
MLXG_INLINE simd_vote simd_active_threads_mask(MLXG_LINE) {
  const auto r = mlxg::vote<>::run(true, line);
  return simd_vote(r.active, r.active);
}
template <int = 0>
MLXG_INLINE bool simd_all(bool v, MLXG_LINE) {
  const auto r = mlxg::vote<>::run(v, line);
  return r.yes == r.active;
}
template <int = 0>
MLXG_INLINE bool simd_any(bool v, MLXG_LINE) {
  return mlxg::vote<>::run(v, line).yes != 0;
}
template <int = 0>
MLXG_INLINE bool simd_is_first(MLXG_LINE) {
  return uint32_t(__builtin_ctz(mlxg::vote<>::run(true, line).active)) == mlxg::self().lane();
}
MLXG_INLINE bool simd_is_helper_thread() {
  return false;
}
template <int = 0>
MLXG_INLINE quad_vote quad_ballot(bool v, MLXG_LINE) {
  const auto r = detail::quad_part(mlxg::vote<>::run(v, line), mlxg::self().lane());
  return quad_vote(r.yes, r.active);
}
template <int = 0>
MLXG_INLINE quad_vote quad_active_threads_mask(MLXG_LINE) {
  const auto r = detail::quad_part(mlxg::vote<>::run(true, line), mlxg::self().lane());
  return quad_vote(r.active, r.active);
}
template <int = 0>
MLXG_INLINE bool quad_all(bool v, MLXG_LINE) {
  const auto r = detail::quad_part(mlxg::vote<>::run(v, line), mlxg::self().lane());
  return r.yes == r.active;
}
template <int = 0>
MLXG_INLINE bool quad_any(bool v, MLXG_LINE) {
  return detail::quad_part(mlxg::vote<>::run(v, line), mlxg::self().lane()).yes != 0;
}
template <int = 0>
MLXG_INLINE bool quad_is_first(MLXG_LINE) {
  const uint32_t lane = mlxg::self().lane();
  const auto r = detail::quad_part(mlxg::vote<>::run(true, line), lane);
  return uint32_t(__builtin_ctz(r.active)) == lane % 4;
}
MLXG_INLINE bool quad_is_helper_thread() {
  return false;
}

}  // namespace metal

#endif
