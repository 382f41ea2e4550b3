// The 16-bit floating-point types half and bfloat.
#ifndef METAL_SMALL_FLOAT_H
#define METAL_SMALL_FLOAT_H

#include "metal_half.h"

namespace metal {

// Each operation computes in float and rounds the result to the type, as hardware does. For + - * / and sqrt of half
// the result is correctly rounded: float has so many bits that rounding twice is harmless.
//
// `bits` is the only member, so the types are trivially copyable, may be members of unions, and are passed in
// registers.
#define MLXG_SMALL_FLOAT(NAME, TO_FLOAT, FROM_FLOAT, CONSTANT_TO, CONSTANT_FROM)                      \
  struct NAME {                                                                                       \
    uint16_t bits;                                                                                    \
    NAME() = default;                                                                                 \
    template <class T, class = enable_if_t<is_arithmetic_v<T>>>                                       \
    MLXG_INLINE constexpr NAME(T v)                                                                   \
        : bits(__builtin_is_constant_evaluated() ? CONSTANT_FROM(float(v)) : FROM_FLOAT(float(v))) {} \
    MLXG_INLINE constexpr operator float() const {                                                    \
      return __builtin_is_constant_evaluated() ? CONSTANT_TO(bits) : TO_FLOAT(bits);                  \
    }                                                                                                 \
    MLXG_INLINE NAME& operator+=(float v) { return *this = NAME(float(*this) + v); }                  \
    MLXG_INLINE NAME& operator-=(float v) { return *this = NAME(float(*this) - v); }                  \
    MLXG_INLINE NAME& operator*=(float v) { return *this = NAME(float(*this) * v); }                  \
    MLXG_INLINE NAME& operator/=(float v) { return *this = NAME(float(*this) / v); }                  \
    MLXG_INLINE NAME& operator++() { return *this = NAME(float(*this) + 1.0f); }                      \
    MLXG_INLINE NAME& operator--() { return *this = NAME(float(*this) - 1.0f); }                      \
    MLXG_INLINE NAME operator++(int) {                                                                \
      NAME old = *this;                                                                               \
      ++*this;                                                                                        \
      return old;                                                                                     \
    }                                                                                                 \
    MLXG_INLINE NAME operator--(int) {                                                                \
      NAME old = *this;                                                                               \
      --*this;                                                                                        \
      return old;                                                                                     \
    }                                                                                                 \
    MLXG_INLINE constexpr NAME operator+() const { return *this; }                                    \
    MLXG_INLINE constexpr NAME operator-() const {                                                    \
      NAME r = *this;                                                                                 \
      r.bits ^= 0x8000u;                                                                              \
      return r;                                                                                       \
    }                                                                                                 \
  };                                                                                                  \
  MLXG_SMALL_OPERATOR(NAME, +)                                                                        \
  MLXG_SMALL_OPERATOR(NAME, -)                                                                        \
  MLXG_SMALL_OPERATOR(NAME, *)                                                                        \
  MLXG_SMALL_OPERATOR(NAME, /)

// NAME ⊕ NAME and NAME ⊕ integer give a NAME. NAME ⊕ float gives a float, by conversion and the built-in operators. The
// operators are templates, so that no other operand converts to NAME.
#define MLXG_SMALL_OPERATOR(NAME, OP)                                                                    \
  template <class A, class = enable_if_t<is_same_v<A, NAME>>>                                            \
  MLXG_INLINE constexpr NAME operator OP(A a, A b) {                                                     \
    return NAME(float(a) OP float(b));                                                                   \
  }                                                                                                      \
  template <class A, class T, class = enable_if_t<is_same_v<A, NAME> && is_integral_v<T>>, class = void> \
  MLXG_INLINE constexpr NAME operator OP(A a, T b) {                                                     \
    return NAME(float(a) OP float(NAME(b)));                                                             \
  }                                                                                                      \
  template <class A, class T, class = enable_if_t<is_same_v<A, NAME> && is_integral_v<T>>>               \
  MLXG_INLINE constexpr NAME operator OP(T a, A b) {                                                     \
    return NAME(float(NAME(a)) OP float(b));                                                             \
  }

MLXG_SMALL_FLOAT(
    half, detail::half_to_float, detail::float_to_half, detail::constant_half_to_float, detail::constant_half)
MLXG_SMALL_FLOAT(
    bfloat, detail::bfloat_to_float, detail::float_to_bfloat, detail::bfloat_to_float, detail::float_to_bfloat)
#undef MLXG_SMALL_FLOAT
#undef MLXG_SMALL_OPERATOR

static_assert(sizeof(half) == 2 && sizeof(bfloat) == 2);

// Package translate gives half literals the suffix h. Clang accepts it although it has no underscore, because the C++
// standard library has a literal suffix h (hours).
MLXG_INLINE constexpr half operator""h(long double v) {
  return half(float(v));
}

}  // namespace metal

#endif
