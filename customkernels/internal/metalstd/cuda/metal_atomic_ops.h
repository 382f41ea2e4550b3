// Atomic operations of CUDA. All are relaxed, the only order of Metal's atomic functions.
#ifndef METAL_ATOMIC_OPS_H
#define METAL_ATOMIC_OPS_H

#include "metal_simd.h"

namespace metal {
namespace detail {

// The unsigned word of a size, which atomicCAS compares and exchanges.
template <int size>
struct word_of;
template <>
struct word_of<1> {
  using type = unsigned int;  // the aligned word around the byte
};
template <>
struct word_of<4> {
  using type = unsigned int;
};
template <>
struct word_of<8> {
  using type = unsigned long long;
};

// Writes desired to *p if *p has the bits of expected. Returns the previous value.
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

template <class T>
MLXG_INLINE bool same_bits(const T& a, const T& b) {
  bool same = true;
  for (unsigned i = 0; i < sizeof(T); ++i) {
    same &= reinterpret_cast<const uchar*>(&a)[i] == reinterpret_cast<const uchar*>(&b)[i];
  }
  return same;
}

// Replaces *p by f(*p) atomically and returns the previous value.
template <class T, class F>
MLXG_INLINE T atomic_update(T* p, F f) {
  T old = *const_cast<volatile T*>(p);
  for (;;) {
    const T seen = exchange_if(p, old, T(f(old)));
    if (same_bits(seen, old)) {
      return old;
    }
    old = seen;
  }
}

template <class T>
MLXG_INLINE T atomic_load(const volatile T* p, int) {
  return *p;
}
template <class T>
MLXG_INLINE void atomic_store(volatile T* p, T v, int) {
  *p = v;
}
template <class T>
MLXG_INLINE T atomic_exchange(T* p, T v, int) {
  return atomic_update(p, [v](T) { return v; });
}
template <class T>
MLXG_INLINE bool atomic_compare_exchange(T* p, T* expected, T desired, int, int) {
  const T seen = exchange_if(p, *expected, desired);
  const bool same = same_bits(seen, *expected);
  *expected = seen;
  return same;
}

// CUDA has an instruction for 32-bit integers, and atomicAdd for float.
#define MLXG_FETCH(NAME, FUNCTION, EXPR)                     \
  template <class T>                                         \
  MLXG_INLINE T fetch_##NAME(T* p, T v, int) {               \
    if constexpr (is_same_v<T, int> || is_same_v<T, uint>) { \
      return ::FUNCTION(p, v);                               \
    } else {                                                 \
      return atomic_update(p, [v](T x) { return T(EXPR); }); \
    }                                                        \
  }
MLXG_INLINE float fetch_add(float* p, float v, int) {
  return ::atomicAdd(p, v);
}
MLXG_FETCH(add, atomicAdd, x + v)
MLXG_FETCH(sub, atomicSub, x - v)
MLXG_FETCH(and, atomicAnd, x& v)
MLXG_FETCH(or, atomicOr, x | v)
MLXG_FETCH(xor, atomicXor, x ^ v)
MLXG_FETCH(min, atomicMin, v < x ? v : x)
MLXG_FETCH(max, atomicMax, x < v ? v : x)
#undef MLXG_FETCH

MLXG_INLINE void fence(mem_flags, memory_order, thread_scope scope) {
  if (scope == thread_scope_device) {
    __threadfence();
  } else {
    __threadfence_block();
  }
}

}  // namespace detail
}  // namespace metal

#endif
