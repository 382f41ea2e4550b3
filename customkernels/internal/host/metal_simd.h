// Barriers, and the functions by which the lanes of a simdgroup work together.
//
// All of them rest on one rendezvous. A lane leaves its argument in its slot
// of the simdgroup and hands the processor on; the lane that arrives last
// completes the operation for all, in lane order, so that results do not
// depend on who that was. The lanes that take part are those that arrived when
// no lane of the simdgroup could run any more: a lane that has ended, or took
// another way, is inactive, as on a GPU.
#ifndef METAL_SIMD_H
#define METAL_SIMD_H

#include "metal_vec.h"
#include "mlxg_fiber.h"
#ifdef MLXG_CHECKED
#include "mlxg_checked.h"
#endif

namespace mlxg {

// Unnamed, because a template's variables would otherwise be one for all the
// shader libraries of the process.
namespace {

uint32_t library_uses_fibers = 0;
uint32_t library_threadgroup_memory = 0;

// Named by every function that can wait, so the library that contains one
// says so when it is loaded, and one that contains none is run as a loop. The
// parameter depends on the function's own, or else its definition would count
// for a use.
template <class>
const int marks_fibers = (library_uses_fibers = 1, 0);

uint32_t reserve_threadgroup_memory(size_t size, size_t alignment) {
  const uint32_t align = alignment < 16 ? 16 : uint32_t(alignment);
  const uint32_t at = (library_threadgroup_memory + align - 1) & ~(align - 1);
  library_threadgroup_memory = at + uint32_t(size);
  return at;
}

// Where a threadgroup variable lies. Initialised while the library loads, for
// the variables that the kernel really has, so the sum is known before a
// launch.
template <class T, int id>
const uint32_t threadgroup_offset = reserve_threadgroup_memory(sizeof(T), alignof(T));

}  // namespace

template <class T, int id>
MLXG_INLINE T& threadgroup_variable() {
#ifdef MLXG_CHECKED
  (void)threadgroup_offset<T, id>;
  return *static_cast<T*>(checked::threadgroup_address<T, id>());
#else
  return *reinterpret_cast<T*>(self().c->threadgroup_memory + threadgroup_offset<T, id>);
#endif
}

template <class T>
struct slot_size {
  static constexpr unsigned value = sizeof(T) <= 4 ? 4 : sizeof(T) <= 8 ? 8 : sizeof(T) <= 16 ? 16 : 32;
};

// The slot of a lane for an argument of type T.
template <class T>
MLXG_INLINE T& slot(simdgroup& g, uint32_t lane) {
  static_assert(sizeof(T) <= 32, "a simdgroup function takes at most 32 bytes a lane");
  constexpr unsigned size = slot_size<T>::value;
  unsigned char* base = size == 4 ? g.in4 : size == 8 ? g.in8 : size == 16 ? g.in16 : g.in32;
  return *reinterpret_cast<T*>(base + size * lane);
}
template <class T>
MLXG_INLINE T* results(simdgroup& g) {
  return reinterpret_cast<T*>(g.out);
}

// The line of a call, as default argument: a type of its own, so that no
// argument of the caller's is taken for it. It tells the calls that diverged
// lanes wait at apart, which an address cannot: compilers duplicate code.
struct line {
  uint32_t number;
};
#define MLXG_LINE ::mlxg::line line = {uint32_t(__builtin_LINE())}

// Whether all waiting lanes wait for `key`.
[[gnu::noinline]] inline bool agree(const simdgroup& g, uint32_t waiting, uint64_t key) {
  uint64_t other = 0;
  for (unsigned i = 0; i < simd_width; ++i)
    other |= (g.key[i] ^ key) & (uint64_t(0) - (waiting >> i & 1u));
  return other == 0;
}

// Whether no other lane would take part in an operation, which then gives a lane its own
// value back. Threadgroups of one thread, which suit this executor best, spend a good
// part of short rows in operations otherwise.
MLXG_INLINE bool alone(const self& me) {
#ifdef MLXG_CHECKED
  return false;
#else
  return me.group().runnable == me.bit() && me.group().waiting == 0;
#endif
}

// Waits for the lanes that take part in the same call of the same operation
// and has Operation::complete(group, active) called once for them.
template <class Operation>
MLXG_INLINE void rendezvous(const self& me, line line) {
  (void)marks_fibers<Operation>;
#ifdef MLXG_CHECKED
  return checked::rendezvous<Operation>(line.number);
#endif
  simdgroup& g = me.group();
  const uint64_t key =
      reinterpret_cast<uint64_t>(&Operation::complete) | uint64_t(line.number) << 48;
  g.key[me.lane()] = key;
  const uint32_t waiting = g.waiting |= me.bit();
  if (__builtin_expect((g.runnable &= ~me.bit()) == 0, 0) && agree(g, waiting, key)) {
    // The common case, and the last to arrive goes on without a switch.
    Operation::complete(g, waiting);
    g.waiting = 0;
    g.runnable = waiting;
    return;
  }
  wait_turn(me);
}

// ---- reductions ----

// Combines 32 values by halving, always in the same order; lanes that are
// not active stand aside as the identity.
template <class T, class Op>
struct reduction {
  [[gnu::noinline]] static void complete(simdgroup& g, uint32_t active) {
    T v[simd_width];
    for (unsigned i = 0; i < simd_width; ++i) v[i] = slot<T>(g, i);
    if (__builtin_expect(active != ~0u, 0))
      for (unsigned i = 0; i < simd_width; ++i)
        if (!(active >> i & 1u)) v[i] = Op::template identity<T>();
    for (unsigned half = simd_width / 2; half > 0; half /= 2)
      for (unsigned i = 0; i < half; ++i) v[i] = Op::template combine<T>(v[i], v[i + half]);
    results<T>(g)[0] = v[0];
  }
  MLXG_INLINE static T run(T v, line line) {
    const self me;
    if (alone(me)) return v;
    slot<T>(me.group(), me.lane()) = v;
    rendezvous<reduction>(me, line);
    return results<T>(me.group())[0];
  }
};

// The same within each four lanes.
template <class T, class Op>
struct quad_reduction {
  [[gnu::noinline]] static void complete(simdgroup& g, uint32_t active) {
    for (unsigned q = 0; q < simd_width; q += 4) {
      T v[4];
      for (unsigned i = 0; i < 4; ++i)
        v[i] = active >> (q + i) & 1u ? slot<T>(g, q + i) : Op::template identity<T>();
      results<T>(g)[q / 4] =
          Op::template combine<T>(Op::template combine<T>(v[0], v[2]), Op::template combine<T>(v[1], v[3]));
    }
  }
  MLXG_INLINE static T run(T v, line line) {
    const self me;
    slot<T>(me.group(), me.lane()) = v;
    rendezvous<quad_reduction>(me, line);
    return results<T>(me.group())[me.lane() / 4];
  }
};

// Running results over the active lanes in lane order, in groups of `width`.
template <class T, class Op, bool inclusive, unsigned width>
struct scan {
  [[gnu::noinline]] static void complete(simdgroup& g, uint32_t active) {
    for (unsigned q = 0; q < simd_width; q += width) {
      T sum = Op::template identity<T>();
      bool first = true;
      for (unsigned i = q; i < q + width; ++i) {
        if (!(active >> i & 1u)) continue;
        const T v = slot<T>(g, i);
        const T next = first ? v : Op::template combine<T>(sum, v);
        results<T>(g)[i] = inclusive ? next : first ? Op::template start<T>() : sum;
        sum = next;
        first = false;
      }
    }
  }
  MLXG_INLINE static T run(T v, line line) {
    const self me;
    slot<T>(me.group(), me.lane()) = v;
    rendezvous<scan>(me, line);
    return results<T>(me.group())[me.lane()];
  }
};

// Lane i of a vector, or the scalar: lets one operation serve both.
template <class T, class F>
MLXG_INLINE T lanewise(const T& a, const T& b, F f) {
  if constexpr (metal::detail::lanes<T> > 1) {
    T r;
    for (int i = 0; i < T::lanes; ++i) r.data[i] = f(a.data[i], b.data[i]);
    return r;
  } else {
    return f(a, b);
  }
}
template <class T>
using lane_type = metal::detail::scalar_of<T>;

struct op_sum {
  // Minus zero is the neutral element of addition: it keeps a sum of minus
  // zeros what it is.
  template <class T>
  MLXG_INLINE static T identity() {
    using S = lane_type<T>;
    if constexpr (metal::is_floating_point_v<S>) return T(S(-0.0f));
    else return T(S(0));
  }
  template <class T>
  MLXG_INLINE static T start() { return T(lane_type<T>(0)); }
  template <class T>
  MLXG_INLINE static T combine(T a, T b) { return T(a + b); }
};
struct op_product {
  template <class T>
  MLXG_INLINE static T identity() { return T(lane_type<T>(1)); }
  template <class T>
  MLXG_INLINE static T start() { return identity<T>(); }
  template <class T>
  MLXG_INLINE static T combine(T a, T b) { return T(a * b); }
};
// A NaN loses against a number, as in fmin and fmax.
struct op_min {
  template <class T>
  MLXG_INLINE static T identity() {
    using S = lane_type<T>;
    if constexpr (metal::is_floating_point_v<S>) return T(metal::numeric_limits<S>::quiet_NaN());
    else return T(metal::numeric_limits<S>::max());
  }
  template <class T>
  MLXG_INLINE static T combine(T a, T b) {
    return lanewise(a, b, [](auto x, auto y) { return y < x || x != x ? y : x; });
  }
};
struct op_max {
  template <class T>
  MLXG_INLINE static T identity() {
    using S = lane_type<T>;
    if constexpr (metal::is_floating_point_v<S>) return T(metal::numeric_limits<S>::quiet_NaN());
    else return T(metal::numeric_limits<S>::lowest());
  }
  template <class T>
  MLXG_INLINE static T combine(T a, T b) {
    return lanewise(a, b, [](auto x, auto y) { return x < y || x != x ? y : x; });
  }
};
struct op_and {
  template <class T>
  MLXG_INLINE static T identity() { return T(lane_type<T>(~lane_type<T>(0))); }
  template <class T>
  MLXG_INLINE static T combine(T a, T b) { return T(a & b); }
};
struct op_or {
  template <class T>
  MLXG_INLINE static T identity() { return T(lane_type<T>(0)); }
  template <class T>
  MLXG_INLINE static T combine(T a, T b) { return T(a | b); }
};
struct op_xor {
  template <class T>
  MLXG_INLINE static T identity() { return T(lane_type<T>(0)); }
  template <class T>
  MLXG_INLINE static T combine(T a, T b) { return T(a ^ b); }
};

// ---- shuffles ----

// Every active lane receives the value of the lane that it names. A lane that
// names an inactive one, which MSL leaves undefined, keeps its own.
template <class T>
struct shuffle {
  [[gnu::noinline]] static void complete(simdgroup& g, uint32_t active) {
    for (unsigned i = 0; i < simd_width; ++i) {
      if (!(active >> i & 1u)) continue;
      const uint32_t from = g.index[i] % simd_width;
      results<T>(g)[i] = slot<T>(g, active >> from & 1u ? from : i);
    }
  }
  MLXG_INLINE static T run(const self& me, T v, uint32_t from, line line) {
    if (alone(me)) return v;
    slot<T>(me.group(), me.lane()) = v;
    me.group().index[me.lane()] = from;
    rendezvous<shuffle>(me, line);
    return results<T>(me.group())[me.lane()];
  }
};

// The value of the first active lane, for all.
template <class T, unsigned width>
struct broadcast_first {
  [[gnu::noinline]] static void complete(simdgroup& g, uint32_t active) {
    for (unsigned q = 0; q < simd_width; q += width) {
      const uint32_t part = width == 32 ? active : active >> q & ((1u << width % 32) - 1);
      if (part) results<T>(g)[q / width] = slot<T>(g, q + uint32_t(__builtin_ctz(part)));
    }
  }
  MLXG_INLINE static T run(T v, line line) {
    const self me;
    if (alone(me)) return v;
    slot<T>(me.group(), me.lane()) = v;
    rendezvous<broadcast_first>(me, line);
    return results<T>(me.group())[me.lane() / width];
  }
};

// ---- votes ----

struct vote_result {
  uint32_t yes, active;
};
template <int = 0>
struct vote {
  [[gnu::noinline]] static void complete(simdgroup& g, uint32_t active) {
    uint32_t yes = 0;
    for (unsigned i = 0; i < simd_width; ++i)
      if (active >> i & 1u && slot<uint32_t>(g, i)) yes |= 1u << i;
    *results<vote_result>(g) = {yes, active};
  }
  MLXG_INLINE static vote_result run(bool v, line line) {
    const self me;
    slot<uint32_t>(me.group(), me.lane()) = v;
    rendezvous<vote>(me, line);
    return *results<vote_result>(me.group());
  }
};

// A rendezvous that exchanges nothing.
template <int = 0>
struct meet {
  [[gnu::noinline]] static void complete(simdgroup&, uint32_t) {}
};

}  // namespace mlxg

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
  (void)mlxg::marks_fibers<Scope>;
#ifdef MLXG_CHECKED
  return mlxg_checked_threadgroup_barrier(uint32_t(flags), line.number);
#endif
  (void)flags;
  const mlxg::self me;
  me.group().runnable &= ~me.bit();
  me.group().at_barrier |= me.bit();
  mlxg::wait_turn(me);
}

// Waits for the active lanes of the simdgroup.
template <int = 0>
MLXG_INLINE void simdgroup_barrier(mem_flags flags, thread_scope = thread_scope_simdgroup, MLXG_LINE) {
#ifdef MLXG_CHECKED
  return mlxg_checked_simdgroup_barrier(uint32_t(flags), line.number);
#endif
  (void)flags;
  mlxg::rendezvous<mlxg::meet<>>(mlxg::self(), line);
}

// ---- simdgroup and quadgroup functions ----

#define MLXG_REDUCE(NAME, OP)                                              \
  template <class T>                                                       \
  MLXG_INLINE T simd_##NAME(T data, MLXG_LINE) {                           \
    return mlxg::reduction<T, mlxg::OP>::run(data, line);                  \
  }                                                                        \
  template <class T>                                                       \
  MLXG_INLINE T quad_##NAME(T data, MLXG_LINE) {                           \
    return mlxg::quad_reduction<T, mlxg::OP>::run(data, line);             \
  }
MLXG_REDUCE(sum, op_sum)
MLXG_REDUCE(product, op_product)
MLXG_REDUCE(min, op_min)
MLXG_REDUCE(max, op_max)
MLXG_REDUCE(and, op_and)
MLXG_REDUCE(or, op_or)
MLXG_REDUCE(xor, op_xor)
#undef MLXG_REDUCE

#define MLXG_SCAN(NAME, OP, INCLUSIVE)                                     \
  template <class T>                                                       \
  MLXG_INLINE T simd_prefix_##NAME(T data, MLXG_LINE) {                    \
    return mlxg::scan<T, mlxg::OP, INCLUSIVE, 32>::run(data, line);        \
  }                                                                        \
  template <class T>                                                       \
  MLXG_INLINE T quad_prefix_##NAME(T data, MLXG_LINE) {                    \
    return mlxg::scan<T, mlxg::OP, INCLUSIVE, 4>::run(data, line);         \
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
  return mlxg::shuffle<T>::run({}, data, lane, line);
}
template <class T>
MLXG_INLINE T simd_shuffle_xor(T data, ushort mask, MLXG_LINE) {
  const mlxg::self me;
  return mlxg::shuffle<T>::run(me, data, me.lane() ^ mask, line);
}
// Lanes whose source lies outside the simdgroup keep their own value.
template <class T>
MLXG_INLINE T simd_shuffle_down(T data, ushort delta, MLXG_LINE) {
  const mlxg::self me;
  const uint32_t from = me.lane() + delta;
  return mlxg::shuffle<T>::run(me, data, from < 32 ? from : me.lane(), line);
}
template <class T>
MLXG_INLINE T simd_shuffle_up(T data, ushort delta, MLXG_LINE) {
  const mlxg::self me;
  return mlxg::shuffle<T>::run(me, data, me.lane() >= delta ? me.lane() - delta : me.lane(), line);
}
template <class T>
MLXG_INLINE T simd_shuffle_rotate_down(T data, ushort delta, MLXG_LINE) {
  const mlxg::self me;
  return mlxg::shuffle<T>::run(me, data, me.lane() + delta, line);
}
template <class T>
MLXG_INLINE T simd_shuffle_rotate_up(T data, ushort delta, MLXG_LINE) {
  const mlxg::self me;
  return mlxg::shuffle<T>::run(me, data, me.lane() - delta, line);
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
// A shuffle within groups of `modulo` lanes, in which a source outside the
// group is taken from `fill`, counted round from the group's other end.
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
  return detail::shuffle_fill(data, fill, delta, 32, line);
}
template <class T>
MLXG_INLINE T simd_shuffle_and_fill_down(T data, T fill, ushort delta, ushort modulo, MLXG_LINE) {
  return detail::shuffle_fill(data, fill, delta, modulo, line);
}
template <class T>
MLXG_INLINE T simd_shuffle_and_fill_up(T data, T fill, ushort delta, MLXG_LINE) {
  return detail::shuffle_fill(data, fill, -int(delta), 32, line);
}
template <class T>
MLXG_INLINE T simd_shuffle_and_fill_up(T data, T fill, ushort delta, ushort modulo, MLXG_LINE) {
  return detail::shuffle_fill(data, fill, -int(delta), modulo, line);
}

namespace detail {
// The lane `to` places on within the quadgroup; `wrap` or else stay.
template <class T>
MLXG_INLINE T quad_shuffle_to(const mlxg::self& me, T data, uint32_t to, mlxg::line line) {
  return mlxg::shuffle<T>::run(me, data, (me.lane() & ~3u) | (to & 3u), line);
}
}  // namespace detail
template <class T>
MLXG_INLINE T quad_shuffle(T data, ushort lane, MLXG_LINE) {
  return detail::quad_shuffle_to({}, data, lane, line);
}
template <class T>
MLXG_INLINE T quad_broadcast(T data, ushort lane, MLXG_LINE) {
  return detail::quad_shuffle_to({}, data, lane, line);
}
template <class T>
MLXG_INLINE T quad_shuffle_xor(T data, ushort mask, MLXG_LINE) {
  const mlxg::self me;
  return detail::quad_shuffle_to(me, data, me.lane() ^ mask, line);
}
template <class T>
MLXG_INLINE T quad_shuffle_down(T data, ushort delta, MLXG_LINE) {
  const mlxg::self me;
  const uint32_t to = me.lane() % 4 + delta;
  return detail::quad_shuffle_to(me, data, to < 4 ? to : me.lane(), line);
}
template <class T>
MLXG_INLINE T quad_shuffle_up(T data, ushort delta, MLXG_LINE) {
  const mlxg::self me;
  const uint32_t at = me.lane() % 4;
  return detail::quad_shuffle_to(me, data, at >= delta ? at - delta : at, line);
}
template <class T>
MLXG_INLINE T quad_shuffle_rotate_down(T data, ushort delta, MLXG_LINE) {
  const mlxg::self me;
  return detail::quad_shuffle_to(me, data, me.lane() + delta, line);
}
template <class T>
MLXG_INLINE T quad_shuffle_rotate_up(T data, ushort delta, MLXG_LINE) {
  const mlxg::self me;
  return detail::quad_shuffle_to(me, data, me.lane() - delta, line);
}
template <class T>
MLXG_INLINE T quad_shuffle_and_fill_down(T data, T fill, ushort delta, MLXG_LINE) {
  return detail::shuffle_fill(data, fill, delta, 4, line);
}
template <class T>
MLXG_INLINE T quad_shuffle_and_fill_up(T data, T fill, ushort delta, MLXG_LINE) {
  return detail::shuffle_fill(data, fill, -int(delta), 4, line);
}

// One bit a lane.
class simd_vote {
  uint64_t lanes_, active_;

 public:
  using vote_t = uint64_t;
  MLXG_INLINE explicit simd_vote(vote_t lanes = 0, vote_t active = 0xffffffffu)
      : lanes_(lanes), active_(active) {}
  MLXG_INLINE explicit operator vote_t() const { return lanes_; }
  MLXG_INLINE bool all() const { return (lanes_ & active_) == active_; }
  MLXG_INLINE bool any() const { return lanes_ != 0; }
};
class quad_vote {
  uint32_t lanes_, active_;

 public:
  using vote_t = uint32_t;
  MLXG_INLINE explicit quad_vote(vote_t lanes = 0, vote_t active = 15)
      : lanes_(lanes), active_(active) {}
  MLXG_INLINE explicit operator vote_t() const { return lanes_; }
  MLXG_INLINE bool all() const { return (lanes_ & active_) == active_; }
  MLXG_INLINE bool any() const { return lanes_ != 0; }
};

namespace detail {
// The part of a vote that a quadgroup sees.
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
MLXG_INLINE bool simd_is_helper_thread() { return false; }
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
MLXG_INLINE bool quad_is_helper_thread() { return false; }

}  // namespace metal

#endif
