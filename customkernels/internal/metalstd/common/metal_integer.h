// Metal's integer functions.
#ifndef METAL_INTEGER_H
#define METAL_INTEGER_H

#include "metal_map.h"

namespace metal {

namespace detail {
MLXG_INLINE constexpr uint64_t reverse(uint64_t v) {
  v = (v >> 1 & 0x5555555555555555u) | (v & 0x5555555555555555u) << 1;
  v = (v >> 2 & 0x3333333333333333u) | (v & 0x3333333333333333u) << 2;
  v = (v >> 4 & 0x0f0f0f0f0f0f0f0fu) | (v & 0x0f0f0f0f0f0f0f0fu) << 4;
  return __builtin_bswap64(v);
}
}  // namespace detail

#define MLXG_I1(NAME, EXPR)                           \
  template <class A>                                  \
  MLXG_INLINE detail::result_of<A> NAME(const A& a) { \
    return detail::map(                               \
        [](auto x) {                                  \
          using S = decltype(x);                      \
          using U = make_unsigned_t<S>;               \
          constexpr int bits = int(sizeof(S)) * 8;    \
          const U u = U(x);                           \
          (void)bits, (void)u;                        \
          return S(EXPR);                             \
        },                                            \
        a);                                           \
  }
MLXG_I1(popcount, __builtin_popcountll(u))
MLXG_I1(clz, u == 0 ? bits : __builtin_clzll(u) - (64 - bits))
MLXG_I1(ctz, u == 0 ? bits : __builtin_ctzll(u))
MLXG_I1(reverse_bits, detail::reverse(uint64_t(u)) >> (64 - bits))
#undef MLXG_I1
namespace detail {
template <class S>
MLXG_INLINE S mulhi1(S a, S b) {
  if constexpr (sizeof(S) == 8) {
    if constexpr (is_unsigned_v<S>) {
      return S(MLXG_UMUL64HI(a, b));
    } else {
      return S(MLXG_MUL64HI(a, b));
    }
  } else if constexpr (is_unsigned_v<S>) {
    return S(uint64_t(a) * uint64_t(b) >> (8 * sizeof(S)));
  } else {
    return S(int64_t(a) * int64_t(b) >> (8 * sizeof(S)));
  }
}
template <class S>
MLXG_INLINE S rotate1(S a, S n) {
  using U = make_unsigned_t<S>;
  constexpr unsigned bits = sizeof(S) * 8;
  const unsigned by = unsigned(n) % bits;
  return by == 0 ? a : S(U(U(a) << by) | U(U(a) >> (bits - by)));
}
template <class S>
MLXG_INLINE S addsat1(S a, S b) {
  S r;
  if (!__builtin_add_overflow(a, b, &r)) {
    return r;
  }
  return b < S(0) ? numeric_limits<S>::min() : numeric_limits<S>::max();
}
template <class S>
MLXG_INLINE S subsat1(S a, S b) {
  S r;
  if (!__builtin_sub_overflow(a, b, &r)) {
    return r;
  }
  return is_unsigned_v<S> || b > S(0) ? numeric_limits<S>::min() : numeric_limits<S>::max();
}
// The saturated value of a·b + c. The sum has twice as many bits. It overflows unless the upper half is the sign
// extension of the lower one.
template <class S>
MLXG_INLINE S madsat1(S a, S b, S c) {
  using U = make_unsigned_t<S>;
  const U low = U(uint64_t(U(a)) * uint64_t(U(b)));
  const U sum = U(low + U(c));
  const S high = S(mulhi1(a, b) - S(c < S(0)) + S(sum < low));
  if (high == (S(sum) < S(0) ? S(-1) : S(0))) {
    return S(sum);
  }
  return high < S(0) ? numeric_limits<S>::min() : numeric_limits<S>::max();
}
}  // namespace detail

#define MLXG_I2(NAME, EXPR)                                          \
  template <class A, class B>                                        \
  MLXG_INLINE detail::result_of<A, B> NAME(const A& a, const B& b) { \
    return detail::map(                                              \
        [](auto x, auto y) {                                         \
          using S = decltype(x);                                     \
          return S(EXPR);                                            \
        },                                                           \
        a, b);                                                       \
  }
#define MLXG_I3(NAME, EXPR)                                                         \
  template <class A, class B, class C>                                              \
  MLXG_INLINE detail::result_of<A, B, C> NAME(const A& a, const B& b, const C& c) { \
    return detail::map(                                                             \
        [](auto x, auto y, auto z) {                                                \
          using S = decltype(x);                                                    \
          return S(EXPR);                                                           \
        },                                                                          \
        a, b, c);                                                                   \
  }
MLXG_I2(mulhi, detail::mulhi1(x, y))
MLXG_I2(rotate, detail::rotate1(x, y))
MLXG_I2(addsat, detail::addsat1(x, y))
MLXG_I2(subsat, detail::subsat1(x, y))
MLXG_I2(hadd, (x & y) + ((x ^ y) >> 1))
MLXG_I2(rhadd, (x | y) - ((x ^ y) >> 1))
MLXG_I2(mul24, (x << 8 >> 8) * (y << 8 >> 8))
MLXG_I3(mad24, (x << 8 >> 8) * (y << 8 >> 8) + z)
MLXG_I3(madhi, detail::mulhi1(x, y) + z)
MLXG_I3(madsat, detail::madsat1(x, y, z))
#undef MLXG_I2
#undef MLXG_I3

// The result is unsigned, so that it does not overflow.
template <class A, class B>
MLXG_INLINE auto absdiff(const A& a, const B& b) {
  using common = detail::widest<A, B>;
  using U = make_unsigned_t<typename common::scalar>;
  const auto bits = detail::map([](auto x, auto y) { return x > y ? U(U(x) - U(y)) : U(U(y) - U(x)); }, a, b);
  if constexpr (common::n == 1) {
    return U(bits);
  } else {
    return vec<U, common::n>(bits);
  }
}

template <class A>
MLXG_INLINE detail::result_of<A> extract_bits(const A& a, uint offset, uint count) {
  return detail::map(
      [=](auto x) {
        using S = decltype(x);
        constexpr uint bits = sizeof(S) * 8;
        if (count == 0) {
          return S(0);
        }
        return S(S(make_unsigned_t<S>(x) << (bits - offset - count)) >> (bits - count));
      },
      a);
}
template <class A, class B>
MLXG_INLINE detail::result_of<A, B> insert_bits(const A& base, const B& insert, uint offset, uint count) {
  return detail::map(
      [=](auto x, auto y) {
        using S = decltype(x);
        using U = make_unsigned_t<S>;
        constexpr uint bits = sizeof(S) * 8;
        const U ones = count >= bits ? U(~U(0)) : U((U(1) << count) - 1);
        const U mask = U(ones << offset);
        return S((U(x) & ~mask) | (U(U(y) << offset) & mask));
      },
      base, insert);
}

}  // namespace metal

#endif
