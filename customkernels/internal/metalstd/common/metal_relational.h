// Metal's relational functions.
#ifndef METAL_RELATIONAL_H
#define METAL_RELATIONAL_H

#include "metal_map.h"

namespace metal {

#define MLXG_TEST(NAME, EXPR)                                \
  template <class A>                                         \
  MLXG_INLINE detail::same_shape<A, bool> NAME(const A& a) { \
    if constexpr (detail::lanes<A> == 1) {                   \
      const float x = float(a);                              \
      return EXPR;                                           \
    } else {                                                 \
      detail::same_shape<A, bool> r;                         \
      for (int i = 0; i < detail::lanes<A>; ++i) {           \
        const float x = detail::lane<float>(a, i);           \
        r.data[i] = EXPR;                                    \
      }                                                      \
      return r;                                              \
    }                                                        \
  }
MLXG_TEST(isnan, x != x)
MLXG_TEST(isinf, __builtin_fabsf(x) == INFINITY)
MLXG_TEST(isfinite, __builtin_fabsf(x) < INFINITY)
MLXG_TEST(
    isnormal,
    __builtin_fabsf(x) < INFINITY &&
        __builtin_fabsf(x) >= (is_same_v<detail::scalar_of<A>, half> ? 0x1p-14f : 0x1p-126f))
MLXG_TEST(signbit, (__builtin_bit_cast(uint32_t, x) >> 31) != 0)
#undef MLXG_TEST
template <class A, class B>
MLXG_INLINE auto isordered(const A& a, const B& b) {
  return !(isnan(a) || isnan(b));
}
template <class A, class B>
MLXG_INLINE auto isunordered(const A& a, const B& b) {
  return isnan(a) || isnan(b);
}

MLXG_INLINE bool all(bool v) {
  return v;
}
MLXG_INLINE bool any(bool v) {
  return v;
}
template <int N>
MLXG_INLINE bool all(const vec<bool, N>& v) {
  bool r = true;
  for (int i = 0; i < N; ++i) {
    r &= v.data[i];
  }
  return r;
}
template <int N>
MLXG_INLINE bool any(const vec<bool, N>& v) {
  bool r = false;
  for (int i = 0; i < N; ++i) {
    r |= v.data[i];
  }
  return r;
}

// Returns b where c is true, and a elsewhere.
template <class A, class B>
MLXG_INLINE detail::result_of<A, B> select(const A& a, const B& b, bool c) {
  using R = detail::result_of<A, B>;
  const R if_false(a), if_true(b);  // reads both, as Metal does
  return c ? if_true : if_false;
}
template <class A, class B, class T, int N>
MLXG_INLINE detail::result_of<A, B> select(const A& a, const B& b, const vec<T, N>& c) {
  using R = detail::result_of<A, B>;
  const R if_false(a), if_true(b);
  R r;
  for (int i = 0; i < N; ++i) {
    // A bool selects by its value, any other lane by its highest bit.
    bool chosen;
    if constexpr (is_same_v<T, bool>) {
      chosen = c.data[i];
    } else {
      chosen = T(c.data[i]) < T(0);
    }
    r.data[i] = chosen ? if_true.data[i] : if_false.data[i];
  }
  return r;
}

}  // namespace metal

#endif
