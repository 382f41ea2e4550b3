// Atomic operations of the host's compiler.
#ifndef METAL_ATOMIC_OPS_H
#define METAL_ATOMIC_OPS_H

#include "metal_simd.h"

namespace metal {
namespace detail {

template <class T>
MLXG_INLINE T atomic_load(const volatile T* p, int order) {
  T v;
  __atomic_load(const_cast<T*>(p), &v, order);
  return v;
}
template <class T>
MLXG_INLINE void atomic_store(T* p, T v, int order) {
  __atomic_store(p, &v, order);
}
template <class T>
MLXG_INLINE T atomic_exchange(T* p, T v, int order) {
  T old;
  __atomic_exchange(p, &v, &old, order);
  return old;
}
template <class T>
MLXG_INLINE bool atomic_compare_exchange(T* p, T* expected, T desired, int success, int failure) {
  return __atomic_compare_exchange(p, expected, &desired, false, success, failure);
}

// Replaces *p by f(*p) atomically and returns the previous value.
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

#define MLXG_FETCH_INTEGER(NAME, OP)                                  \
  template <class T>                                                  \
  MLXG_INLINE T fetch_##NAME(T* p, T v, int order) {                  \
    if constexpr (is_integral_v<T> && !is_same_v<T, bool>) {          \
      return __atomic_fetch_##NAME(p, v, order);                      \
    } else {                                                          \
      return atomic_update(p, order, [v](T x) { return T(x OP v); }); \
    }                                                                 \
  }
MLXG_FETCH_INTEGER(add, +)
MLXG_FETCH_INTEGER(sub, -)
MLXG_FETCH_INTEGER(and, &)
MLXG_FETCH_INTEGER(or, |)
MLXG_FETCH_INTEGER(xor, ^)
#undef MLXG_FETCH_INTEGER
template <class T>
MLXG_INLINE T fetch_min(T* p, T v, int order) {
  return atomic_update(p, order, [v](T x) { return v < x ? v : x; });
}
template <class T>
MLXG_INLINE T fetch_max(T* p, T v, int order) {
  return atomic_update(p, order, [v](T x) { return x < v ? v : x; });
}

MLXG_INLINE void fence(mem_flags flags, memory_order o, thread_scope scope) {
#ifdef MLXG_CHECKED
  mlxg_checked_fence(uint32_t(flags), uint32_t(o), uint32_t(scope));
#else
  (void)flags, (void)o, (void)scope;
  // A fence whose order is not a constant compiles to a call. The strongest order is always valid.
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
#endif
}

}  // namespace detail
}  // namespace metal

#endif
