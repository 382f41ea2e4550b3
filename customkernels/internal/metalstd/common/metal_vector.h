// Metal's vectors of two to four lanes.
#ifndef METAL_VECTOR_H
#define METAL_VECTOR_H

#include "metal_swizzle.h"

namespace metal {

// The members of vectors of every width. The operators are friends but not templates, so that either operand may be a
// scalar or a swizzle.
#define MLXG_BINARY_WITH(OP, LANE)                                 \
  MLXG_INLINE friend vec operator OP(const vec& a, const vec& b) { \
    vec r;                                                         \
    for (int i = 0; i < lanes; ++i)                                \
      r.data[i] = T(a.data[i] OP(LANE));                           \
    return r;                                                      \
  }                                                                \
  MLXG_INLINE vec& operator OP## = (const vec& b) {                \
    return *this = *this OP b;                                     \
  }
#define MLXG_BINARY(OP) MLXG_BINARY_WITH(OP, b.data[i])
// Shifts use the lower bits of the count.
#define MLXG_SHIFT(OP) MLXG_BINARY_WITH(OP, b.data[i] & int(sizeof(T) * 8 - 1))
#define MLXG_COMPARE(OP)                                                        \
  MLXG_INLINE friend vec<bool, lanes> operator OP(const vec& a, const vec& b) { \
    vec<bool, lanes> r;                                                         \
    for (int i = 0; i < lanes; ++i)                                             \
      r.data[i] = a.data[i] OP b.data[i];                                       \
    return r;                                                                   \
  }
#define MLXG_UNARY(OP)                               \
  MLXG_INLINE friend vec operator OP(const vec& a) { \
    vec r;                                           \
    for (int i = 0; i < lanes; ++i)                  \
      r.data[i] = T(OP a.data[i]);                   \
    return r;                                        \
  }
#define MLXG_VEC_COMMON(N)                                                                                \
  static constexpr int lanes = N;                                                                         \
  using element_type = T;                                                                                 \
  vec() = default;                                                                                        \
  vec(const vec&) = default;                                                                              \
  MLXG_INLINE constexpr vec& operator=(const vec& v) {                                                    \
    for (int i = 0; i < N; ++i)                                                                           \
      data[i] = v.data[i];                                                                                \
    return *this;                                                                                         \
  }                                                                                                       \
  /* Another lane type converts on demand only, as in MSL. */                                             \
  template <class U>                                                                                      \
  MLXG_INLINE explicit vec(const vec<U, N>& v) {                                                          \
    detail::convert_lanes<N>(data, v.data);                                                               \
  }                                                                                                       \
  template <class U, int M, int... I, class = enable_if_t<sizeof...(I) == N && !is_same_v<T, U>>>         \
  MLXG_INLINE explicit vec(const swizzle<vec<U, N>, U, M, I...>& v) : vec(vec<U, N>(v)) {}                \
  template <class U, class = enable_if_t<!is_same_v<T, U>>>                                               \
  MLXG_INLINE explicit vec(const packed_vec<U, N>& v) : vec(vec<U, N>(v)) {}                              \
  /* Any sequence of scalars and vectors with N lanes in all. */                                          \
  template <                                                                                              \
      class A, class B, class... C,                                                                       \
      class = enable_if_t<(                                                                               \
          detail::lanes<A> > 0 && detail::lanes<B> > 0 &&                                                 \
          ((detail::lanes<A> + detail::lanes<B>)+... + detail::lanes<C>) == N && sizeof...(C) + 2 != N)>> \
  MLXG_INLINE vec(const A& a, const B& b, const C&... c) {                                                \
    int at = 0;                                                                                           \
    detail::fill(data, at, a);                                                                            \
    detail::fill(data, at, b);                                                                            \
    (detail::fill(data, at, c), ...);                                                                     \
  }                                                                                                       \
  MLXG_INLINE T& operator[](int i) {                                                                      \
    return data[detail::element<N>(i)];                                                                   \
  }                                                                                                       \
  MLXG_INLINE const T& operator[](int i) const {                                                          \
    return data[detail::element<N>(i)];                                                                   \
  }                                                                                                       \
  MLXG_BINARY(+)                                                                                          \
  MLXG_BINARY(-)                                                                                          \
  MLXG_BINARY(*)                                                                                          \
  MLXG_BINARY(/)                                                                                          \
  MLXG_BINARY(%)                                                                                          \
  MLXG_BINARY(&)                                                                                          \
  MLXG_BINARY(|)                                                                                          \
  MLXG_BINARY(^)                                                                                          \
  MLXG_SHIFT(<<)                                                                                          \
  MLXG_SHIFT(>>)                                                                                          \
  MLXG_COMPARE(==)                                                                                        \
  MLXG_COMPARE(!=)                                                                                        \
  MLXG_COMPARE(<)                                                                                         \
  MLXG_COMPARE(>)                                                                                         \
  MLXG_COMPARE(<=)                                                                                        \
  MLXG_COMPARE(>=)                                                                                        \
  MLXG_COMPARE(&&)                                                                                        \
  MLXG_COMPARE(||)                                                                                        \
  MLXG_UNARY(+)                                                                                           \
  MLXG_UNARY(-)                                                                                           \
  MLXG_UNARY(~)                                                                                           \
  MLXG_INLINE friend vec<bool, N> operator!(const vec& a) {                                               \
    vec<bool, N> r;                                                                                       \
    for (int i = 0; i < N; ++i)                                                                           \
      r.data[i] = !a.data[i];                                                                             \
    return r;                                                                                             \
  }                                                                                                       \
  MLXG_INLINE vec& operator++() {                                                                         \
    return *this = *this + vec(T(1));                                                                     \
  }                                                                                                       \
  MLXG_INLINE vec& operator--() {                                                                         \
    return *this = *this - vec(T(1));                                                                     \
  }                                                                                                       \
  MLXG_INLINE vec operator++(int) {                                                                       \
    vec old = *this;                                                                                      \
    ++*this;                                                                                              \
    return old;                                                                                           \
  }                                                                                                       \
  MLXG_INLINE vec operator--(int) {                                                                       \
    vec old = *this;                                                                                      \
    --*this;                                                                                              \
    return old;                                                                                           \
  }

namespace detail {
template <class T, class U>
MLXG_INLINE constexpr enable_if_t<lanes<U> == 1> fill(T* data, int& at, const U& v) {
  data[at++] = T(v);
}
template <class T, class U, int N>
MLXG_INLINE constexpr void fill(T* data, int& at, const vec<U, N>& v) {
  for (int i = 0; i < N; ++i) {
    data[at++] = T(v.data[i]);
  }
}
template <class T, class V, class U, int N, int... I>
MLXG_INLINE constexpr void fill(T* data, int& at, const swizzle<V, U, N, I...>& v) {
  ((data[at++] = T(v.data[I])), ...);
}
template <class T, class V, class U, int N>
MLXG_INLINE constexpr void fill(T* data, int& at, const packed<V, U, N>& v) {
  for (int i = 0; i < N; ++i) {
    data[at++] = T(v.data[i]);
  }
}
template <class A>
constexpr bool scalar_argument = lanes_of<A>::n == 1;
}  // namespace detail

// A vector of two or four lanes is aligned to its size. Three lanes have the size and alignment of four.
template <class T>
struct alignas(2 * sizeof(T)) vec<T, 2> {
  union {
    struct {
      T x, y;
    };
    struct {
      T r, g;
    };
    T data[2];
    MLXG_2A(T, x, y)
    MLXG_2A(T, r, g)
  };
  template <class A, class = enable_if_t<detail::scalar_argument<A>>>
  MLXG_INLINE constexpr vec(A s) : x(T(s)), y(T(s)) {}
  template <class A, class B, class = enable_if_t<detail::scalar_argument<A> && detail::scalar_argument<B>>>
  MLXG_INLINE constexpr vec(A a, B b) : x(T(a)), y(T(b)) {}
  MLXG_VEC_COMMON(2)
};

template <class T>
struct alignas(4 * sizeof(T)) vec<T, 3> {
  union {
    struct {
      T x, y, z;
    };
    struct {
      T r, g, b;
    };
    T data[3];
    MLXG_3A(T, x, y, z)
    MLXG_3A(T, r, g, b)
  };
  template <class A, class = enable_if_t<detail::scalar_argument<A>>>
  MLXG_INLINE constexpr vec(A s) : x(T(s)), y(T(s)), z(T(s)) {}
  template <
      class A,
      class B,
      class C,
      class = enable_if_t<detail::scalar_argument<A> && detail::scalar_argument<B> && detail::scalar_argument<C>>>
  MLXG_INLINE constexpr vec(A a, B b, C c) : x(T(a)), y(T(b)), z(T(c)) {}
  MLXG_VEC_COMMON(3)
};

template <class T>
struct alignas(4 * sizeof(T)) vec<T, 4> {
  union {
    struct {
      T x, y, z, w;
    };
    struct {
      T r, g, b, a;
    };
    T data[4];
    MLXG_4A(T, x, y, z, w)
    MLXG_4A(T, r, g, b, a)
  };
  template <class A, class = enable_if_t<detail::scalar_argument<A>>>
  MLXG_INLINE constexpr vec(A s) : x(T(s)), y(T(s)), z(T(s)), w(T(s)) {}
  template <
      class A,
      class B,
      class C,
      class D,
      class = enable_if_t<
          detail::scalar_argument<A> && detail::scalar_argument<B> && detail::scalar_argument<C> &&
          detail::scalar_argument<D>>>
  MLXG_INLINE constexpr vec(A a, B b, C c, D d) : x(T(a)), y(T(b)), z(T(c)), w(T(d)) {}
  MLXG_VEC_COMMON(4)
};

#undef MLXG_BINARY
#undef MLXG_BINARY_WITH
#undef MLXG_SHIFT
#undef MLXG_COMPARE
#undef MLXG_UNARY
#undef MLXG_VEC_COMMON

}  // namespace metal

#endif
