// Metal's atomics. An atomic<T> is stored as a T.
#ifndef METAL_ATOMIC_H
#define METAL_ATOMIC_H

#include "metal_atomic_ops.h"

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
// T, without taking part in template argument deduction.
template <class T>
struct no_deduction {
  using type = T;
};
template <class T>
using same = typename no_deduction<T>::type;

template <class T>
MLXG_INLINE T* address(volatile atomic<T>* p) {
  return const_cast<T*>(&p->value);
}
}  // namespace detail

template <class T>
MLXG_INLINE void atomic_store_explicit(volatile atomic<T>* p, detail::same<T> v, memory_order o) {
  detail::atomic_store(detail::address(p), v, o);
}
template <class T>
MLXG_INLINE T atomic_load_explicit(const volatile atomic<T>* p, memory_order o) {
  return detail::atomic_load(&p->value, o);
}
template <class T>
MLXG_INLINE T atomic_exchange_explicit(volatile atomic<T>* p, detail::same<T> v, memory_order o) {
  return detail::atomic_exchange(detail::address(p), v, o);
}
template <class T>
MLXG_INLINE bool atomic_compare_exchange_weak_explicit(
    volatile atomic<T>* p, T* expected, detail::same<T> desired, memory_order success, memory_order failure) {
  return detail::atomic_compare_exchange(detail::address(p), expected, T(desired), success, failure);
}

#define MLXG_FETCH(NAME)                                                                                   \
  template <class T>                                                                                       \
  MLXG_INLINE T atomic_fetch_##NAME##_explicit(volatile atomic<T>* p, detail::same<T> v, memory_order o) { \
    return detail::fetch_##NAME(detail::address(p), v, o);                                                 \
  }
MLXG_FETCH(add)
MLXG_FETCH(sub)
MLXG_FETCH(and)
MLXG_FETCH(or)
MLXG_FETCH(xor)
MLXG_FETCH(min)
MLXG_FETCH(max)
#undef MLXG_FETCH

// Minimum and maximum of 64-bit integers, without a result.
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
  if (o != memory_order_relaxed) {
    detail::fence(flags, o, scope);
  }
}

}  // namespace metal

#endif
