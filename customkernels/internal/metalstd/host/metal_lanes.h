// SIMD operations and threadgroup memory on the host.
//
// All operations use one rendezvous. A lane stores its argument in its slot of the simdgroup and yields. The last lane
// completes the operation for all lanes, in lane order, so that the result does not depend on which lane was last. An
// operation includes the lanes that have arrived when no lane of the simdgroup is runnable. A lane that has ended or
// diverged is inactive, as on a GPU.
#ifndef METAL_LANES_H
#define METAL_LANES_H

#include "metal_reduce.h"
#include "mlxg_fiber.h"
#ifdef MLXG_CHECKED
#include "mlxg_checked.h"
#endif

namespace mlxg {

// In an unnamed namespace: variables of templates would otherwise be shared by all shader libraries of the process.
namespace {

uint32_t library_uses_fibers = 0;
uint32_t library_threadgroup_memory = 0;

// Every function that can wait names this variable. A library with such a function sets library_uses_fibers while it is
// loaded. Other libraries run their threads in a loop, without fibers. The template parameter depends on the caller's
// template parameter, so that a function that is defined but not instantiated does not count.
template <class>
const int marks_fibers = (library_uses_fibers = 1, 0);

uint32_t reserve_threadgroup_memory(size_t size, size_t alignment) {
  const uint32_t align = alignment < 16 ? 16 : uint32_t(alignment);
  const uint32_t at = (library_threadgroup_memory + align - 1) & ~(align - 1);
  library_threadgroup_memory = at + uint32_t(size);
  return at;
}

// The offset of a threadgroup variable. It is initialized while the library is loaded, for variables that the kernel
// uses, so that the total size is known before a launch.
template <class T, int id>
const uint32_t threadgroup_offset = reserve_threadgroup_memory(sizeof(T), alignof(T));

}  // namespace

// zero is for the checker only, which sets the variable to zeros before a threadgroup runs.
template <class T, int id, bool zero = false>
MLXG_INLINE T& threadgroup_variable() {
#ifdef MLXG_CHECKED
  (void)threadgroup_offset<T, id>;
  return *static_cast<T*>(checker::threadgroup_address<T, id, zero>());
#else
  return *reinterpret_cast<T*>(self().c->threadgroup_memory + threadgroup_offset<T, id>);
#endif
}

// pause lets the runtime continue another threadgroup. The caller's threadgroup continues later, possibly on another
// system thread. A kernel of few long threadgroups, whose threads do not synchronize, calls it often, so that system
// threads of different speed end together.
#ifndef MLXG_CHECKED
#define MLXG_PAUSES
MLXG_INLINE void pause() {
  const self me;
  if (me.c->should_pause(me.c)) {
    switch_context(me.own(), &me.c->main);
  }
}
#endif

template <class T>
struct slot_size {
  static constexpr unsigned value = sizeof(T) <= 4 ? 4 : sizeof(T) <= 8 ? 8 : sizeof(T) <= 16 ? 16 : 32;
};

// Returns the slot of a lane for an argument of type T.
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

// The line of a call, as a default argument. It distinguishes the calls at which diverged lanes wait. An address would
// not: compilers duplicate code. The type is distinct, so that no other argument converts to it.
struct line {
  uint32_t number;
};
#define MLXG_LINE ::mlxg::line line = {uint32_t(__builtin_LINE())}

// Returns whether all waiting lanes have this key.
[[gnu::noinline]] inline bool agree(const simdgroup& g, uint32_t waiting, uint64_t key) {
  uint64_t other = 0;
  for (unsigned i = 0; i < simd_width; ++i) {
    other |= (g.key[i] ^ key) & (uint64_t(0) - (waiting >> i & 1u));
  }
  return other == 0;
}

// Returns whether this is the only active lane. The result of most operations is then the lane's own value, without a
// rendezvous. Threadgroups of one thread are the fastest on this executor, and with short rows a rendezvous would take
// much of their time.
MLXG_INLINE bool alone(const self& me) {
#ifdef MLXG_CHECKED
  return false;
#else
  return me.group().runnable == me.bit() && me.group().waiting == 0;
#endif
}

// Waits for the other lanes of the same call. Operation::complete(group, active) is called once for all.
template <class Operation>
MLXG_INLINE void rendezvous(const self& me, line line) {
  (void)marks_fibers<Operation>;
#ifdef MLXG_CHECKED
  return checker::rendezvous<Operation>(line.number);
#endif
  simdgroup& g = me.group();
  const uint64_t key = reinterpret_cast<uint64_t>(&Operation::complete) | uint64_t(line.number) << 48;
  g.key[me.lane()] = key;
  const uint32_t waiting = g.waiting |= me.bit();
  if (__builtin_expect((g.runnable &= ~me.bit()) == 0, 0) && agree(g, waiting, key)) {
    // The common case. The last lane continues without a switch.
    Operation::complete(g, waiting);
    g.waiting = 0;
    g.runnable = waiting;
    return;
  }
  wait_turn(me);
}

// ---- reductions ----

// Combines 32 values by halving, always in the same order. Inactive lanes count as the identity.
template <class T, class Op>
struct reduction {
  [[gnu::noinline]] static void complete(simdgroup& g, uint32_t active) {
    T v[simd_width];
    for (unsigned i = 0; i < simd_width; ++i) {
      v[i] = slot<T>(g, i);
    }
    if (__builtin_expect(active != ~0u, 0)) {
      for (unsigned i = 0; i < simd_width; ++i) {
        if (!(active >> i & 1u)) {
          v[i] = Op::template identity<T>();
        }
      }
    }
    for (unsigned half = simd_width / 2; half > 0; half /= 2) {
      for (unsigned i = 0; i < half; ++i) {
        v[i] = Op::template combine<T>(v[i], v[i + half]);
      }
    }
    results<T>(g)[0] = v[0];
  }
  MLXG_INLINE static T run(T v, line line) {
    const self me;
    if (alone(me)) {
      return v;
    }
    slot<T>(me.group(), me.lane()) = v;
    rendezvous<reduction>(me, line);
    return results<T>(me.group())[0];
  }
};

// The reduction of each quadgroup.
template <class T, class Op>
struct quad_reduction {
  [[gnu::noinline]] static void complete(simdgroup& g, uint32_t active) {
    for (unsigned q = 0; q < simd_width; q += 4) {
      T v[4];
      for (unsigned i = 0; i < 4; ++i) {
        v[i] = active >> (q + i) & 1u ? slot<T>(g, q + i) : Op::template identity<T>();
      }
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

// Scans over the active lanes in lane order, in groups of `width` lanes.
template <class T, class Op, bool inclusive, unsigned width>
struct scan {
  [[gnu::noinline]] static void complete(simdgroup& g, uint32_t active) {
    for (unsigned q = 0; q < simd_width; q += width) {
      T sum = Op::template identity<T>();
      bool first = true;
      for (unsigned i = q; i < q + width; ++i) {
        if (!(active >> i & 1u)) {
          continue;
        }
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

// ---- shuffles ----

// Tells the checker an argument of the next shuffle, which must be equal in all lanes of each group of `width` lanes.
MLXG_INLINE void uniform(uint32_t argument, uint32_t width) {
#ifdef MLXG_CHECKED
  mlxg_checked_uniform(argument, width);
#endif
  (void)argument, (void)width;
}

// Gives each active lane the value of the lane it names. If that lane is inactive, where MSL defines no result, it
// keeps its own value.
template <class T>
struct shuffle {
  [[gnu::noinline]] static void complete(simdgroup& g, uint32_t active) {
    for (unsigned i = 0; i < simd_width; ++i) {
      if (!(active >> i & 1u)) {
        continue;
      }
      const uint32_t from = g.index[i] % simd_width;
      results<T>(g)[i] = slot<T>(g, active >> from & 1u ? from : i);
    }
  }
  MLXG_INLINE static T run(const self& me, T v, uint32_t from, line line) {
    if (alone(me)) {
      return v;
    }
    slot<T>(me.group(), me.lane()) = v;
    me.group().index[me.lane()] = from;
    rendezvous<shuffle>(me, line);
    return results<T>(me.group())[me.lane()];
  }
};

// Gives all lanes the value of the first active lane.
template <class T, unsigned width>
struct broadcast_first {
  [[gnu::noinline]] static void complete(simdgroup& g, uint32_t active) {
    for (unsigned q = 0; q < simd_width; q += width) {
      const uint32_t part = width == 32 ? active : active >> q & ((1u << width % 32) - 1);
      if (part) {
        results<T>(g)[q / width] = slot<T>(g, q + uint32_t(__builtin_ctz(part)));
      }
    }
  }
  MLXG_INLINE static T run(T v, line line) {
    const self me;
    if (alone(me)) {
      return v;
    }
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
    for (unsigned i = 0; i < simd_width; ++i) {
      if (active >> i & 1u && slot<uint32_t>(g, i)) {
        yes |= 1u << i;
      }
    }
    *results<vote_result>(g) = {yes, active};
  }
  MLXG_INLINE static vote_result run(bool v, line line) {
    const self me;
    slot<uint32_t>(me.group(), me.lane()) = v;
    rendezvous<vote>(me, line);
    return *results<vote_result>(me.group());
  }
};

// A rendezvous without data.
template <int = 0>
struct meet {
  [[gnu::noinline]] static void complete(simdgroup&, uint32_t) {}
};

// Waits for all threads of the threadgroup that have not ended. Scope makes it a template, for marks_fibers.
template <class Scope>
MLXG_INLINE void wait_threadgroup(uint32_t flags, line line) {
  (void)marks_fibers<Scope>;
#ifdef MLXG_CHECKED
  return mlxg_checked_threadgroup_barrier(flags, line.number);
#endif
  (void)flags, (void)line;
  const self me;
  me.group().runnable &= ~me.bit();
  me.group().at_barrier |= me.bit();
  wait_turn(me);
}

// Waits for the active lanes of the simdgroup.
template <int = 0>
MLXG_INLINE void wait_simdgroup(uint32_t flags, line line) {
#ifdef MLXG_CHECKED
  return mlxg_checked_simdgroup_barrier(flags, line.number);
#endif
  (void)flags;
  rendezvous<meet<>>(self(), line);
}

}  // namespace mlxg

#endif
