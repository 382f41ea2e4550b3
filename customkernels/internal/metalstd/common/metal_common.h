// min, max, clamp, abs and sign, on any arithmetic type.
#ifndef METAL_COMMON_H
#define METAL_COMMON_H

#include "metal_map.h"

namespace metal {

namespace detail {
template <class S>
MLXG_INLINE S min1(S a, S b) {
  if constexpr (is_same_v<S, float>) {
    return mlxg::smaller(a, b);
  } else if constexpr (is_floating_point_v<S>) {
    return b < a || a != a ? b : a;
  } else {
    return b < a ? b : a;
  }
}
template <class S>
MLXG_INLINE S max1(S a, S b) {
  if constexpr (is_same_v<S, float>) {
    return mlxg::larger(a, b);
  } else if constexpr (is_floating_point_v<S>) {
    return a < b || a != a ? b : a;
  } else {
    return a < b ? b : a;
  }
}
}  // namespace detail

#define MLXG_MIN_MAX                                                                   \
  template <class A, class B>                                                          \
  MLXG_INLINE detail::result_of<A, B> min(const A& a, const B& b) {                    \
    return detail::map([](auto x, auto y) { return detail::min1(x, y); }, a, b);       \
  }                                                                                    \
  template <class A, class B>                                                          \
  MLXG_INLINE detail::result_of<A, B> max(const A& a, const B& b) {                    \
    return detail::map([](auto x, auto y) { return detail::max1(x, y); }, a, b);       \
  }                                                                                    \
  template <class A, class B, class C>                                                 \
  MLXG_INLINE detail::result_of<A, B, C> min3(const A& a, const B& b, const C& c) {    \
    return min(a, min(b, c));                                                          \
  }                                                                                    \
  template <class A, class B, class C>                                                 \
  MLXG_INLINE detail::result_of<A, B, C> max3(const A& a, const B& b, const C& c) {    \
    return max(a, max(b, c));                                                          \
  }                                                                                    \
  template <class A, class B, class C>                                                 \
  MLXG_INLINE detail::result_of<A, B, C> median3(const A& a, const B& b, const C& c) { \
    return max(min(a, b), min(max(a, b), c));                                          \
  }                                                                                    \
  template <class A, class B, class C>                                                 \
  MLXG_INLINE detail::result_of<A, B, C> clamp(const A& a, const B& b, const C& c) {   \
    return min(max(a, b), c);                                                          \
  }                                                                                    \
  template <class A>                                                                   \
  MLXG_INLINE detail::result_of<A> abs(const A& a) {                                   \
    return detail::map(                                                                \
        [](auto x) {                                                                   \
          using S = decltype(x);                                                       \
          if constexpr (is_same_v<S, float>)                                           \
            return __builtin_fabsf(x);                                                 \
          else if constexpr (is_floating_point_v<S>)                                   \
            return S(__builtin_fabsf(float(x)));                                       \
          else if constexpr (is_unsigned_v<S>)                                         \
            return x;                                                                  \
          else                                                                         \
            return S(x < 0 ? -x : x);                                                  \
        },                                                                             \
        a);                                                                            \
  }
MLXG_MIN_MAX
namespace precise {
MLXG_MIN_MAX
}
namespace fast {
MLXG_MIN_MAX
}
#undef MLXG_MIN_MAX

template <class A>
MLXG_INLINE detail::result_of<A> sign(const A& a) {
  return detail::map(
      [](auto x) {
        using S = decltype(x);
        return x > S(0) ? S(1) : x < S(0) ? S(-1) : x == S(0) ? x : S(0);
      },
      a);
}

}  // namespace metal

#endif
