// Metal's mathematics on scalars and vectors.
#ifndef METAL_MATH_H
#define METAL_MATH_H

#include "metal_exp.h"
#include "metal_vec.h"

namespace metal {
namespace detail {

// The type in which operands of types A and B meet, as among C's arithmetic
// types; half and bfloat yield to float only.
template <class A, class B>
struct common {
  using type = decltype(A() + B());
};
template <class A>
struct common<A, A> {
  using type = A;
};
template <>
struct common<double, double> {
  using type = float;
};
template <>
struct common<half, bfloat> {
  using type = float;
};
template <>
struct common<bfloat, half> {
  using type = float;
};
#define MLXG_DOUBLE_IS_FLOAT(T) \
  template <>                   \
  struct common<T, double> {    \
    using type = T;             \
  };                            \
  template <>                   \
  struct common<double, T> {    \
    using type = T;             \
  };
MLXG_DOUBLE_IS_FLOAT(float)
MLXG_DOUBLE_IS_FLOAT(half)
MLXG_DOUBLE_IS_FLOAT(bfloat)
#undef MLXG_DOUBLE_IS_FLOAT
template <class A, class B>
using common_t = typename common<A, B>::type;

// The type of a function of A: its vector, or the scalar.
template <class S, int N>
struct shape {
  using type = vec<S, N>;
};
template <class S>
struct shape<S, 1> {
  using type = S;
};

template <class... A>
struct widest;
template <class A>
struct widest<A> {
  static constexpr int n = lanes<A>;
  using scalar = scalar_of<A>;
};
template <class A, class... B>
struct widest<A, B...> {
  using rest = widest<B...>;
  static constexpr bool ok = lanes<A> > 0 && rest::n > 0;
  static constexpr int n = !ok ? 0 : lanes<A> > rest::n ? lanes<A> : rest::n;
  // A vector decides the type of its lanes; a scalar beside it follows.
  static constexpr bool mine = lanes<A> > 1 && rest::n == 1;
  static constexpr bool theirs = lanes<A> == 1 && rest::n > 1;
  using scalar = conditional_t<
      mine,
      scalar_of<A>,
      conditional_t<theirs, typename rest::scalar, common_t<scalar_of<A>, typename rest::scalar>>>;
};
template <class... A>
using result_of =
    enable_if_t<(widest<A...>::n > 0), typename shape<typename widest<A...>::scalar, widest<A...>::n>::type>;

// Lane i of anything, as an S.
template <class S, class A>
MLXG_INLINE S lane(const A& a, int) {
  return S(a);
}
template <class S, class T, int N>
MLXG_INLINE S lane(const vec<T, N>& a, int i) {
  return S(a.data[i]);
}
template <class S, class V, class T, int N, int... I>
MLXG_INLINE S lane(const swizzle<V, T, N, I...>& a, int i) {
  return S(V(a).data[i]);
}
template <class S, class V, class T, int N>
MLXG_INLINE S lane(const packed<V, T, N>& a, int i) {
  return S(a.data[i]);
}

// f lane by lane, computed and returned in the operands' common type.
template <class F, class... A>
MLXG_INLINE result_of<A...> map(F f, const A&... a) {
  using S = typename widest<A...>::scalar;
  constexpr int n = widest<A...>::n;
  if constexpr (n == 1) {
    return S(f(S(a)...));
  } else {
    vec<S, n> r;
    for (int i = 0; i < n; ++i) {
      r.data[i] = S(f(lane<S>(a, i)...));
    }
    return r;
  }
}

// The type in which a floating-point function computes: floats, always.
template <class S>
struct computes {
  using type = float;
};
template <class... A>
struct floating {
  using S = typename widest<A...>::scalar;
  // An integer becomes a float; a half stays one.
  using scalar = conditional_t<is_integral_v<S> || is_same_v<S, double>, float, S>;
  using type = typename shape<scalar, widest<A...>::n>::type;
};
template <class... A>
using float_result_of = typename floating<enable_if_t<(widest<A...>::n > 0), A>...>::type;

// f on floats lane by lane; one rounding to the result's type.
template <class F, class... A>
MLXG_INLINE float_result_of<A...> map_float(F f, const A&... a) {
  using S = typename floating<A...>::scalar;
  constexpr int n = widest<A...>::n;
  if constexpr (n == 1) {
    return S(f(float(a)...));
  } else {
    vec<S, n> r;
    for (int i = 0; i < n; ++i) {
      r.data[i] = S(f(lane<float>(a, i)...));
    }
    return r;
  }
}

template <class A>
using vec_of = typename shape<scalar_of<A>, lanes<A>>::type;
template <class A, class S>
using same_shape = typename shape<S, lanes<A>>::type;

}  // namespace detail

// ---- floating-point functions ----

// MLXG_ARGUMENT is the type as which a function takes an argument.
#define MLXG_ARGUMENT(A) const A&
#define MLXG_F1(NAME, EXPR)                                                                   \
  template <class A>                                                                          \
  MLXG_INLINE detail::float_result_of<MLXG_ARGUMENT(A)> NAME(const A& a) {                    \
    return detail::map_float([](float x) { return EXPR; }, static_cast<MLXG_ARGUMENT(A)>(a)); \
  }
#define MLXG_F2(NAME, EXPR)                                                                                         \
  template <class A, class B>                                                                                       \
  MLXG_INLINE detail::float_result_of<MLXG_ARGUMENT(A), MLXG_ARGUMENT(B)> NAME(const A& a, const B& b) {            \
    return detail::map_float(                                                                                       \
        [](float x, float y) { return EXPR; }, static_cast<MLXG_ARGUMENT(A)>(a), static_cast<MLXG_ARGUMENT(B)>(b)); \
  }
#define MLXG_F3(NAME, EXPR)                                                                       \
  template <class A, class B, class C>                                                            \
  MLXG_INLINE detail::float_result_of<MLXG_ARGUMENT(A), MLXG_ARGUMENT(B), MLXG_ARGUMENT(C)> NAME( \
      const A& a, const B& b, const C& c) {                                                       \
    return detail::map_float(                                                                     \
        [](float x, float y, float z) { return EXPR; }, static_cast<MLXG_ARGUMENT(A)>(a),         \
        static_cast<MLXG_ARGUMENT(B)>(b), static_cast<MLXG_ARGUMENT(C)>(c));                      \
  }

#define MLXG_TRANSCENDENTAL                                 \
  MLXG_F1(acos, __builtin_acosf(x))                         \
  MLXG_F1(acosh, __builtin_acoshf(x))                       \
  MLXG_F1(asin, __builtin_asinf(x))                         \
  MLXG_F1(asinh, __builtin_asinhf(x))                       \
  MLXG_F1(atan, __builtin_atanf(x))                         \
  MLXG_F1(atanh, __builtin_atanhf(x))                       \
  MLXG_F2(atan2, __builtin_atan2f(x, y))                    \
  MLXG_F1(cos, __builtin_cosf(x))                           \
  MLXG_F1(cosh, __builtin_coshf(x))                         \
  MLXG_F1(cospi, __builtin_cosf(x* M_PI_F))                 \
  MLXG_F1(exp10, detail::exp10_1(x))                        \
  MLXG_F1(log, detail::log1(x))                             \
  MLXG_F1(log2, detail::log2_1(x))                          \
  MLXG_F1(log10, detail::log10_1(x))                        \
  MLXG_F2(pow, __builtin_powf(x, y))                        \
  MLXG_F2(powr, __builtin_powf(x, y))                       \
  MLXG_F1(rsqrt, MLXG_RSQRT(x))                             \
  MLXG_F1(sin, __builtin_sinf(x))                           \
  MLXG_F1(sinh, __builtin_sinhf(x))                         \
  MLXG_F1(sinpi, __builtin_sinf(x* M_PI_F))                 \
  MLXG_F1(sqrt, __builtin_sqrtf(x))                         \
  MLXG_F1(tan, __builtin_tanf(x))                           \
  MLXG_F1(tanh, detail::tanh1(x))                           \
  MLXG_F1(tanpi, __builtin_tanf(x* M_PI_F))                 \
  MLXG_F2(divide, x / y)                                    \
  MLXG_F1(recip, 1.0f / x)                                  \
  MLXG_F1(ceil, __builtin_ceilf(x))                         \
  MLXG_F1(floor, __builtin_floorf(x))                       \
  MLXG_F1(trunc, __builtin_truncf(x))                       \
  MLXG_F1(rint, __builtin_rintf(x))                         \
  MLXG_F1(round, __builtin_roundf(x))                       \
  MLXG_F1(fabs, __builtin_fabsf(x))                         \
  MLXG_F1(fract, detail::fract1(x))                         \
  MLXG_F2(fmod, __builtin_fmodf(x, y))                      \
  MLXG_F2(fmin, __builtin_fminf(x, y))                      \
  MLXG_F2(fmax, __builtin_fmaxf(x, y))                      \
  MLXG_F2(fdim, __builtin_fdimf(x, y))                      \
  MLXG_F2(copysign, __builtin_copysignf(x, y))              \
  MLXG_F1(saturate, detail::saturate1(x))                   \
  MLXG_F3(fma, __builtin_fmaf(x, y, z))                     \
  MLXG_F3(mix, x + (y - x) * z)                             \
  MLXG_F2(step, y < x ? 0.0f : 1.0f)                        \
  MLXG_F3(smoothstep, detail::smoothstep1(x, y, z))         \
  MLXG_F1(degrees, x * (180.0f / M_PI_F))                   \
  MLXG_F1(radians, x*(M_PI_F / 180.0f))                     \
  MLXG_F3(fmin3, __builtin_fminf(x, __builtin_fminf(y, z))) \
  MLXG_F3(fmax3, __builtin_fmaxf(x, __builtin_fmaxf(y, z))) \
  MLXG_F3(fmedian3, __builtin_fmaxf(__builtin_fminf(x, y), __builtin_fminf(__builtin_fmaxf(x, y), z)))

namespace detail {
MLXG_INLINE float fract1(float x) {
  const float f = x - __builtin_floorf(x);
  return f < 1.0f ? f : x != x ? x : 0x1.fffffep-1f;
}
MLXG_INLINE float saturate1(float x) {
  return !(x > 0.0f) ? 0.0f : x > 1.0f ? 1.0f : x;
}
MLXG_INLINE float smoothstep1(float a, float b, float x) {
  const float t = saturate1((x - a) / (b - a));
  return t * t * (3.0f - 2.0f * t);
}
}  // namespace detail

#define MLXG_EXPONENTIALS       \
  MLXG_F1(exp, detail::exp1(x)) \
  MLXG_F1(exp2, detail::exp2_1(x))

MLXG_TRANSCENDENTAL
MLXG_EXPONENTIALS
MLXG_F2(nextafter, __builtin_nextafterf(x, y))
// MSL's two precisions are one here but for the exponentials, of which a GPU has one instruction:
// what else is fast there is not on a CPU. Both are of floats only, which a half becomes.
#undef MLXG_ARGUMENT
#define MLXG_ARGUMENT(A) detail::single<A>
namespace detail {
template <class A>
using single = conditional_t<is_same_v<A, half> || is_same_v<A, bfloat>, float, const A&>;
}
namespace precise {
MLXG_TRANSCENDENTAL
MLXG_EXPONENTIALS
}  // namespace precise
namespace fast {
MLXG_TRANSCENDENTAL
MLXG_F1(exp, detail::fast_exp1(x))
MLXG_F1(exp2, detail::fast_exp2_1(x))
}  // namespace fast
#undef MLXG_EXPONENTIALS
#undef MLXG_ARGUMENT
#undef MLXG_TRANSCENDENTAL
#undef MLXG_F1
#undef MLXG_F2
#undef MLXG_F3

// sin and cos at once, and the functions that return a second value.
template <class A>
MLXG_INLINE detail::float_result_of<A> sincos(const A& a, detail::float_result_of<A>& c) {
  c = cos(a);
  return sin(a);
}
template <class A>
MLXG_INLINE detail::float_result_of<A> modf(const A& a, detail::float_result_of<A>& whole) {
  whole = trunc(a);
  return copysign(fabs(a) - fabs(whole), a);
}
template <class A>
MLXG_INLINE detail::vec_of<A> frexp(const A& a, detail::same_shape<A, int>& e) {
  using S = detail::scalar_of<A>;
  if constexpr (detail::lanes<A> == 1) {
    return S(__builtin_frexpf(float(a), &e));
  } else {
    detail::vec_of<A> r;
    for (int i = 0; i < detail::lanes<A>; ++i) {
      r.data[i] = S(__builtin_frexpf(detail::lane<float>(a, i), &e.data[i]));
    }
    return r;
  }
}
template <class A, class B>
MLXG_INLINE detail::vec_of<A> ldexp(const A& a, const B& e) {
  using S = detail::scalar_of<A>;
  if constexpr (detail::lanes<A> == 1) {
    return S(__builtin_ldexpf(float(a), int(e)));
  } else {
    detail::vec_of<A> r;
    for (int i = 0; i < detail::lanes<A>; ++i) {
      r.data[i] = S(__builtin_ldexpf(detail::lane<float>(a, i), detail::lane<int>(e, i)));
    }
    return r;
  }
}
template <class A>
MLXG_INLINE detail::same_shape<A, int> ilogb(const A& a) {
  if constexpr (detail::lanes<A> == 1) {
    return __builtin_ilogbf(float(a));
  } else {
    detail::same_shape<A, int> r;
    for (int i = 0; i < detail::lanes<A>; ++i) {
      r.data[i] = __builtin_ilogbf(detail::lane<float>(a, i));
    }
    return r;
  }
}

// ---- functions of any arithmetic type ----

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

// ---- relations ----

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

// b where c, else a.
template <class A, class B>
MLXG_INLINE detail::result_of<A, B> select(const A& a, const B& b, bool c) {
  using R = detail::result_of<A, B>;
  return c ? R(b) : R(a);
}
template <class A, class B, class T, int N>
MLXG_INLINE detail::result_of<A, B> select(const A& a, const B& b, const vec<T, N>& c) {
  using R = detail::result_of<A, B>;
  using S = detail::scalar_of<R>;
  R r;
  for (int i = 0; i < N; ++i) {
    // Booleans choose by value, other lanes by their highest bit.
    bool chosen;
    if constexpr (is_same_v<T, bool>) {
      chosen = c.data[i];
    } else {
      chosen = T(c.data[i]) < T(0);
    }
    r.data[i] = chosen ? detail::lane<S>(b, i) : detail::lane<S>(a, i);
  }
  return r;
}

// ---- integers ----

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
// a·b + c in twice as many bits, of which the upper half says whether the lower one has it all.
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

// Unsigned, so that it is never too large.
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

// ---- geometry ----

template <class A, class B, class = enable_if_t<(detail::lanes<A> > 1 && detail::lanes<B> > 1)>>
MLXG_INLINE auto dot(const A& a, const B& b) {
  const auto p = detail::vec_of<A>(a) * detail::vec_of<B>(b);
  auto sum = p.data[0];
  for (int i = 1; i < detail::lanes<A>; ++i) {
    sum = sum + p.data[i];
  }
  return sum;
}
template <class A>
MLXG_INLINE auto length_squared(const A& a) {
  return dot(a, a);
}
template <class A>
MLXG_INLINE auto length(const A& a) {
  return sqrt(dot(a, a));
}
template <class A, class B>
MLXG_INLINE auto distance(const A& a, const B& b) {
  return length(detail::vec_of<A>(a) - detail::vec_of<B>(b));
}
template <class A, class B>
MLXG_INLINE auto distance_squared(const A& a, const B& b) {
  return length_squared(detail::vec_of<A>(a) - detail::vec_of<B>(b));
}
template <class A>
MLXG_INLINE auto normalize(const A& a) {
  return detail::vec_of<A>(a) * rsqrt(dot(a, a));
}
template <class I, class N>
MLXG_INLINE auto reflect(const I& i, const N& n) {
  return detail::vec_of<I>(i) - 2 * dot(n, i) * detail::vec_of<N>(n);
}
template <class I, class N, class S>
MLXG_INLINE auto refract(const I& i, const N& n, S eta) {
  using V = detail::vec_of<I>;
  using T = detail::scalar_of<I>;
  const T d = dot(n, i), k = T(1) - T(eta) * T(eta) * (T(1) - d * d);
  return k < T(0) ? V(T(0)) : V(T(eta) * V(i) - (T(eta) * d + sqrt(k)) * V(n));
}
template <class N, class I, class R>
MLXG_INLINE auto faceforward(const N& n, const I& i, const R& reference) {
  using V = detail::vec_of<N>;
  return dot(reference, i) < 0 ? V(n) : V(-V(n));
}
template <class A, class B>
MLXG_INLINE auto cross(const A& a_, const B& b_) {
  const auto a = detail::vec_of<A>(a_);
  const auto b = detail::vec_of<B>(b_);
  return detail::vec_of<A>(a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x);
}
namespace precise {
using metal::distance;
using metal::length;
using metal::normalize;
using metal::sincos;
}  // namespace precise
namespace fast {
using metal::distance;
using metal::length;
using metal::normalize;
using metal::sincos;
}  // namespace fast

// ---- vectors packed into a word ----

// Lanes of BITS bits each, the first lowest: whole numbers that stand for [0, 1], or signed ones
// for [-1, 1].
namespace detail {
template <int BITS, bool SIGNED, class V>
MLXG_INLINE uint pack(const V& v) {
  constexpr float top = float((1 << (SIGNED ? BITS - 1 : BITS)) - 1);
  uint word = 0;
  for (int i = 0; i < 32 / BITS; ++i) {
    const float x = clamp(float(v.data[i]), SIGNED ? -1.0f : 0.0f, 1.0f);
    word |= (uint(int(rint(x * top))) & ((1u << BITS) - 1)) << (BITS * i);
  }
  return word;
}
template <int BITS, bool SIGNED, class V>
MLXG_INLINE V unpack(uint word) {
  constexpr float top = float((1 << (SIGNED ? BITS - 1 : BITS)) - 1);
  V v;
  for (int i = 0; i < 32 / BITS; ++i) {
    const uint lane = word << (32 - BITS - BITS * i);
    const float x = SIGNED ? float(int(lane) >> (32 - BITS)) : float(lane >> (32 - BITS));
    v.data[i] = scalar_of<V>(max(x / top, -1.0f));
  }
  return v;
}
}  // namespace detail
#define MLXG_PACK(KIND, LANES, BITS, SIGNED, T)                                   \
  MLXG_INLINE uint pack_##T##_to_##KIND##LANES##x##BITS(const vec<T, LANES>& v) { \
    return detail::pack<BITS, SIGNED>(v);                                         \
  }                                                                               \
  MLXG_INLINE vec<T, LANES> unpack_##KIND##LANES##x##BITS##_to_##T(uint word) {   \
    return detail::unpack<BITS, SIGNED, vec<T, LANES>>(word);                     \
  }
MLXG_PACK(unorm, 4, 8, false, float)
MLXG_PACK(snorm, 4, 8, true, float)
MLXG_PACK(unorm, 2, 16, false, float)
MLXG_PACK(snorm, 2, 16, true, float)
MLXG_PACK(unorm, 4, 8, false, half)
MLXG_PACK(snorm, 4, 8, true, half)
MLXG_PACK(unorm, 2, 16, false, half)
MLXG_PACK(snorm, 2, 16, true, half)
#undef MLXG_PACK

}  // namespace metal

#endif
