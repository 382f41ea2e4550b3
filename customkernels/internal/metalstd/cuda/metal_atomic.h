// Metal's atomics, on the same bytes as the plain type. Metal has the relaxed order only.
#ifndef METAL_ATOMIC_H
#define METAL_ATOMIC_H

#include "metal_simd.h"

namespace metal {

template <class T>
struct atomic {
  T value;
};
using atomic_int = atomic<int>;
using atomic_uint = atomic<uint>;
using atomic_bool = atomic<bool>;
using atomic_float = atomic<float>;
using atomic_long = atomic<long>;
using atomic_ulong = atomic<ulong>;

namespace detail {
template <class T>
struct no_deduction {
  using type = T;
};
template <class T>
using same = typename no_deduction<T>::type;

// The unsigned word of a size, which CUDA compares and exchanges.
template <int size>
struct word_of;
template <>
struct word_of<1> {
  using type = unsigned int;  // the aligned word around it
};
template <>
struct word_of<4> {
  using type = unsigned int;
};
template <>
struct word_of<8> {
  using type = unsigned long long;
};

// Compares *p with expected and, if they are the same bits, writes desired; returns what was
// there.
template <class T>
MLXG_INLINE T exchange_if(T* p, T expected, T desired) {
  using word = typename word_of<sizeof(T)>::type;
  if constexpr (sizeof(T) == 1) {
    const unsigned shift = (unsigned long long)p % 4 * 8;
    word* const at = reinterpret_cast<word*>((unsigned long long)p & ~3ull);
    const word mask = 0xffu << shift;
    word old = *reinterpret_cast<volatile word*>(at);
    for (;;) {
      const word mine = old >> shift & 0xffu;
      if (mine != word(as_type<uchar>(expected))) {
        return as_type<T>(uchar(mine));
      }
      const word next = (old & ~mask) | word(as_type<uchar>(desired)) << shift;
      const word seen = ::atomicCAS(at, old, next);
      if (seen == old) {
        return expected;
      }
      old = seen;
    }
  } else {
    return as_type<T>(::atomicCAS(reinterpret_cast<word*>(p), as_type<word>(expected), as_type<word>(desired)));
  }
}

// f applied until nobody came between; returns what was there.
template <class T, class F>
MLXG_INLINE T atomic_update(T* p, F f) {
  T old = *const_cast<volatile T*>(p);
  for (;;) {
    const T seen = exchange_if(p, old, T(f(old)));
    bool same = true;
    for (unsigned i = 0; i < sizeof(T); ++i) {
      same &= reinterpret_cast<const uchar*>(&seen)[i] == reinterpret_cast<const uchar*>(&old)[i];
    }
    if (same) {
      return old;
    }
    old = seen;
  }
}
}  // namespace detail

template <class T>
MLXG_INLINE void atomic_store_explicit(volatile atomic<T>* p, detail::same<T> v, memory_order) {
  p->value = v;
}
template <class T>
MLXG_INLINE T atomic_load_explicit(const volatile atomic<T>* p, memory_order) {
  return p->value;
}
template <class T>
MLXG_INLINE T atomic_exchange_explicit(volatile atomic<T>* p, detail::same<T> v, memory_order) {
  return detail::atomic_update(const_cast<T*>(&p->value), [v](T) { return v; });
}
template <class T>
MLXG_INLINE bool atomic_compare_exchange_weak_explicit(
    volatile atomic<T>* p, T* expected, detail::same<T> desired, memory_order, memory_order) {
  const T seen = detail::exchange_if(const_cast<T*>(&p->value), *expected, T(desired));
  bool same = true;
  for (unsigned i = 0; i < sizeof(T); ++i) {
    same &= reinterpret_cast<const uchar*>(&seen)[i] == reinterpret_cast<const uchar*>(expected)[i];
  }
  *expected = seen;
  return same;
}

#define MLXG_FETCH(NAME, NATIVE, EXPR)                                                                   \
  template <class T>                                                                                     \
  MLXG_INLINE T atomic_fetch_##NAME##_explicit(volatile atomic<T>* p, detail::same<T> v, memory_order) { \
    T* const at = const_cast<T*>(&p->value);                                                             \
    NATIVE                                                                                               \
    return detail::atomic_update(at, [v](T x) { return T(EXPR); });                                      \
  }
#define MLXG_NATIVE(FUNCTION)                            \
  if constexpr (is_same_v<T, int> || is_same_v<T, uint>) \
    return ::FUNCTION(at, v);                            \
  else
MLXG_FETCH(add, if constexpr (is_same_v<T, float>) return ::atomicAdd(at, v); else MLXG_NATIVE(atomicAdd), x + v)
MLXG_FETCH(sub, MLXG_NATIVE(atomicSub), x - v)
MLXG_FETCH(and, MLXG_NATIVE(atomicAnd), x& v)
MLXG_FETCH(or, MLXG_NATIVE(atomicOr), x | v)
MLXG_FETCH(xor, MLXG_NATIVE(atomicXor), x ^ v)
MLXG_FETCH(min, MLXG_NATIVE(atomicMin), v < x ? v : x)
MLXG_FETCH(max, MLXG_NATIVE(atomicMax), x < v ? v : x)
#undef MLXG_FETCH
#undef MLXG_NATIVE

// 64-bit minimum and maximum without a result.
template <class T>
MLXG_INLINE void atomic_min_explicit(volatile atomic<T>* p, detail::same<T> v, memory_order o) {
  atomic_fetch_min_explicit(p, v, o);
}
template <class T>
MLXG_INLINE void atomic_max_explicit(volatile atomic<T>* p, detail::same<T> v, memory_order o) {
  atomic_fetch_max_explicit(p, v, o);
}

MLXG_INLINE void atomic_thread_fence(
    mem_flags, memory_order o = memory_order_seq_cst, thread_scope scope = thread_scope_device) {
  if (o == memory_order_relaxed) {
    return;
  }
  if (scope == thread_scope_device) {
    __threadfence();
  } else {
    __threadfence_block();
  }
}

}  // namespace metal

#endif
