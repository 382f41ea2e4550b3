// MLX's complex numbers.
#ifndef MLX_COMPLEX_H
#define MLX_COMPLEX_H

#include "metal_scalar.h"

// A complex number with MLX's member names.
template <class T>
struct complex_t {
  T real, imag;
  complex_t() = default;
  MLXG_INLINE constexpr complex_t(T re, T im) : real(re), imag(im) {}
  template <class U, class = metal::enable_if_t<metal::is_arithmetic_v<U>>>
  MLXG_INLINE constexpr complex_t(U re) : real(T(re)), imag(0) {}
  template <class U, class = metal::enable_if_t<metal::is_arithmetic_v<U>>>
  MLXG_INLINE constexpr operator U() const {
    return U(real);
  }
};
typedef complex_t<float> complex64_t;

template <class T>
MLXG_INLINE complex_t<T> operator+(complex_t<T> a, complex_t<T> b) {
  return {a.real + b.real, a.imag + b.imag};
}
template <class T>
MLXG_INLINE complex_t<T> operator-(complex_t<T> a, complex_t<T> b) {
  return {a.real - b.real, a.imag - b.imag};
}
template <class T>
MLXG_INLINE complex_t<T> operator-(complex_t<T> a) {
  return {-a.real, -a.imag};
}
template <class T>
MLXG_INLINE complex_t<T> operator*(complex_t<T> a, complex_t<T> b) {
  return {a.real * b.real - a.imag * b.imag, a.real * b.imag + a.imag * b.real};
}
template <class T>
MLXG_INLINE complex_t<T> operator/(complex_t<T> a, complex_t<T> b) {
  const T d = b.real * b.real + b.imag * b.imag;
  return {(a.real * b.real + a.imag * b.imag) / d, (a.imag * b.real - a.real * b.imag) / d};
}
// The remainder of both parts, with the sign of the divisor.
template <class T>
MLXG_INLINE complex_t<T> operator%(complex_t<T> a, complex_t<T> b) {
  const auto part = [](float x, float y) {
    const float r = __builtin_fmodf(x, y);
    return T(r != 0 && (r < 0) != (y < 0) ? r + y : r);
  };
  return {part(a.real, b.real), part(a.imag, b.imag)};
}
template <class T>
MLXG_INLINE bool operator==(complex_t<T> a, complex_t<T> b) {
  return a.real == b.real && a.imag == b.imag;
}
template <class T>
MLXG_INLINE bool operator!=(complex_t<T> a, complex_t<T> b) {
  return !(a == b);
}
// Lexicographic order, as MLX sorts.
template <class T>
MLXG_INLINE bool operator<(complex_t<T> a, complex_t<T> b) {
  return a.real < b.real || (a.real == b.real && a.imag < b.imag);
}
template <class T>
MLXG_INLINE bool operator>(complex_t<T> a, complex_t<T> b) {
  return b < a;
}
template <class T>
MLXG_INLINE bool operator<=(complex_t<T> a, complex_t<T> b) {
  return !(b < a);
}
template <class T>
MLXG_INLINE bool operator>=(complex_t<T> a, complex_t<T> b) {
  return !(a < b);
}

// Operators with a real operand.
#define MLXG_MIXED(OP)                                                               \
  template <class T, class U, class = metal::enable_if_t<metal::is_arithmetic_v<U>>> \
  MLXG_INLINE auto operator OP(complex_t<T> a, U b) {                                \
    return a OP complex_t<T>(b);                                                     \
  }                                                                                  \
  template <class T, class U, class = metal::enable_if_t<metal::is_arithmetic_v<U>>> \
  MLXG_INLINE auto operator OP(U a, complex_t<T> b) {                                \
    return complex_t<T>(a) OP b;                                                     \
  }
MLXG_MIXED(+)
MLXG_MIXED(-)
MLXG_MIXED(*)
MLXG_MIXED(/)
MLXG_MIXED(==)
MLXG_MIXED(!=)
MLXG_MIXED(<)
MLXG_MIXED(>)
MLXG_MIXED(<=)
MLXG_MIXED(>=)
#undef MLXG_MIXED

#endif
