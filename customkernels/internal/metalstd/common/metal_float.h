// Metal's floating-point functions on scalars and vectors.
#ifndef METAL_FLOAT_H
#define METAL_FLOAT_H

#include "metal_exp.h"
#include "metal_map.h"

namespace metal {

// MLXG_ARGUMENT(A) is the type of an argument inside a function.
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
// metal::precise and metal::fast differ only in exp and exp2, and only on a GPU, which has a fast instruction for them.
// Both namespaces compute half and bfloat arguments as float.
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

// sincos returns the sine and stores the cosine. modf, frexp, ldexp and ilogb follow C.
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

}  // namespace metal

#endif
