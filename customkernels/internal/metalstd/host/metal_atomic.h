// Metal's atomics, on the same bytes as the plain type.
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

template <class T>
MLXG_INLINE T atomic_load(const volatile T* p, int order) {
  T v;
  __atomic_load(const_cast<T*>(p), &v, order);
  return v;
}
// f applied until nobody came between; returns what was there.
template <class T, class F>
MLXG_INLINE T atomic_update(T* p, int order, F f) {
  T old = atomic_load(p, __ATOMIC_RELAXED);
  for (;;) {
    T next = f(old);
    if (__atomic_compare_exchange(p, &old, &next, true, order, __ATOMIC_RELAXED)) {
      return old;
    }
  }
}
}  // namespace detail

template <class T>
MLXG_INLINE void atomic_store_explicit(volatile atomic<T>* p, detail::same<T> v, memory_order o) {
  __atomic_store(const_cast<T*>(&p->value), &v, o);
}
template <class T>
MLXG_INLINE T atomic_load_explicit(const volatile atomic<T>* p, memory_order o) {
  return detail::atomic_load(&p->value, o);
}
template <class T>
MLXG_INLINE T atomic_exchange_explicit(volatile atomic<T>* p, detail::same<T> v, memory_order o) {
  T old;
  __atomic_exchange(const_cast<T*>(&p->value), &v, &old, o);
  return old;
}
template <class T>
MLXG_INLINE bool atomic_compare_exchange_weak_explicit(
    volatile atomic<T>* p, T* expected, detail::same<T> desired, memory_order ok, memory_order fail) {
  return __atomic_compare_exchange(const_cast<T*>(&p->value), expected, &desired, false, ok, fail);
}

#define MLXG_FETCH(NAME, EXPR)                                                                             \
  template <class T>                                                                                       \
  MLXG_INLINE T atomic_fetch_##NAME##_explicit(volatile atomic<T>* p, detail::same<T> v, memory_order o) { \
    T* at = const_cast<T*>(&p->value);                                                                     \
    EXPR                                                                                                   \
  }
#define MLXG_NATIVE(NAME, OP)                                                                                         \
  MLXG_FETCH(                                                                                                         \
      NAME, if constexpr (is_integral_v<T> && !is_same_v<T, bool>) { return __atomic_fetch_##NAME(at, v, o); } else { \
        return detail::atomic_update(at, o, [v](T x) { return T(x OP v); });                                          \
      })
MLXG_NATIVE(add, +)
MLXG_NATIVE(sub, -)
MLXG_NATIVE(and, &)
MLXG_NATIVE(or, |)
MLXG_NATIVE(xor, ^)
MLXG_FETCH(min, return detail::atomic_update(at, o, [v](T x) { return v < x ? v : x; });)
MLXG_FETCH(max, return detail::atomic_update(at, o, [v](T x) { return x < v ? v : x; });)
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
    mem_flags flags, memory_order o = memory_order_seq_cst, thread_scope scope = thread_scope_device) {
#ifdef MLXG_CHECKED
  if (o != memory_order_relaxed) {
    mlxg_checked_fence(uint32_t(flags), uint32_t(o), uint32_t(scope));
  }
  return;
#endif
  (void)flags, (void)scope;
  // __atomic_thread_fence wants a constant to be cheap; the strongest is right.
  if (o != memory_order_relaxed) {
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
  }
}

}  // namespace metal

#endif
