// Metal's vectors of two to four lanes, with every swizzle.
#ifndef METAL_VEC_H
#define METAL_VEC_H

#include "metal_scalar.h"

namespace metal {

template <class T, int N>
struct vec;
namespace detail {
template <class V, class T, int N>
struct packed;
template <class V>
struct not_deduced {
  using type = V;
};
}  // namespace detail
template <class T, int N>
using packed_vec = detail::packed<vec<T, N>, T, N>;

// Some lanes of a vector under a name such as v.zyx. It lies in a union with
// the lanes, so it costs nothing to be there; it reads as a V and, when no
// lane is named twice, can be assigned.
//
// Its class is a template over V, whose friend operators are thereby found
// for swizzles also.
template <class V, class T, int N, int... I>
struct swizzle {
  T data[N];

  // No aggregate, so that {x, y} is a V where one is assigned.
  explicit swizzle() = default;
  swizzle(const swizzle&) = default;
  MLXG_INLINE constexpr operator V() const { return V(data[I]...); }
  MLXG_INLINE swizzle& operator=(const V& v) {
    int lane = 0;
    ((data[I] = v.data[lane++]), ...);
    return *this;
  }
  // The implicit one would copy the lanes that are not named, too.
  MLXG_INLINE swizzle& operator=(const swizzle& s) { return *this = V(s); }
  MLXG_INLINE T operator[](int lane) const { return V(*this)[lane]; }
};

// Not members: a vector of four has more than three hundred swizzles, each a class.
#define MLXG_ASSIGN(OP)                                                              \
  template <class V, class T, int N, int... I>                                       \
  MLXG_INLINE swizzle<V, T, N, I...>& operator OP## =                                \
      (swizzle<V, T, N, I...> & s, const typename detail::not_deduced<V>::type& v) { \
    return s = V(s) OP v;                                                            \
  }
MLXG_ASSIGN(+)
MLXG_ASSIGN(-)
MLXG_ASSIGN(*)
MLXG_ASSIGN(/)
MLXG_ASSIGN(%)
MLXG_ASSIGN(&)
MLXG_ASSIGN(|)
MLXG_ASSIGN(^)
MLXG_ASSIGN(<<)
MLXG_ASSIGN(>>)
#undef MLXG_ASSIGN

namespace detail {
// What a type is to vector code: the vector it is or reads as, its lanes.
template <class A>
struct lanes_of {
  static constexpr int n = is_arithmetic_v<A> || __is_enum(A) ? 1 : 0;
  using scalar = A;
};
template <class T, int N>
struct lanes_of<vec<T, N>> {
  static constexpr int n = N;
  using scalar = T;
};
template <class V, class T, int N, int... I>
struct lanes_of<swizzle<V, T, N, I...>> {
  static constexpr int n = sizeof...(I);
  using scalar = T;
};
template <class V, class T, int N>
struct lanes_of<packed<V, T, N>> {
  static constexpr int n = N;
  using scalar = T;
};
template <class A>
constexpr int lanes = lanes_of<remove_cvref_t<A>>::n;
template <class A>
using scalar_of = typename lanes_of<remove_cvref_t<A>>::scalar;

template <int N, class T, class U>
MLXG_INLINE void convert_lanes(T* to, const U* from) {
  for (int i = 0; i < N; ++i) {
    to[i] = T(from[i]);
  }
}
#if defined(__F16C__)
// One instruction where lanes on their own would take one each.
template <int N>
MLXG_INLINE void convert_lanes(float* to, const half* from) {
  typedef short v8hi __attribute__((vector_size(16)));
  v8hi in = {};
  __builtin_memcpy(&in, from, N * sizeof(half));
  const auto out = __builtin_ia32_vcvtph2ps(in);
  __builtin_memcpy(to, &out, N * sizeof(float));
}
template <int N>
MLXG_INLINE void convert_lanes(half* to, const float* from) {
  typedef float v4sf __attribute__((vector_size(16)));
  v4sf in = {};
  __builtin_memcpy(&in, from, N * sizeof(float));
  const auto out = __builtin_ia32_vcvtps2ph(in, 0);
  __builtin_memcpy(to, &out, N * sizeof(half));
}
#endif
}  // namespace detail

// Every name of two to four letters over the letters of an N-lane vector. Each
// level fixes one more letter and, from the second on, declares what it has.
// clang-format off
#define MLXG_SW(T, N, K, NAME, ...) swizzle<vec<T, K>, T, N, __VA_ARGS__> NAME;

#define MLXG_2A(T,x,y) MLXG_2B(T,x,0,x,y) MLXG_2B(T,y,1,x,y)
#define MLXG_2B(T,a,A,x,y) MLXG_2C(T,a,A,x,0,x,y) MLXG_2C(T,a,A,y,1,x,y)
#define MLXG_2C(T,a,A,b,B,x,y) MLXG_SW(T,2,2,a##b,A,B) \
  MLXG_2D(T,a,A,b,B,x,0,x,y) MLXG_2D(T,a,A,b,B,y,1,x,y)
#define MLXG_2D(T,a,A,b,B,c,C,x,y) MLXG_SW(T,2,3,a##b##c,A,B,C) \
  MLXG_SW(T,2,4,a##b##c##x,A,B,C,0) MLXG_SW(T,2,4,a##b##c##y,A,B,C,1)

#define MLXG_3A(T,x,y,z) MLXG_3B(T,x,0,x,y,z) MLXG_3B(T,y,1,x,y,z) MLXG_3B(T,z,2,x,y,z)
#define MLXG_3B(T,a,A,x,y,z) \
  MLXG_3C(T,a,A,x,0,x,y,z) MLXG_3C(T,a,A,y,1,x,y,z) MLXG_3C(T,a,A,z,2,x,y,z)
#define MLXG_3C(T,a,A,b,B,x,y,z) MLXG_SW(T,3,2,a##b,A,B) \
  MLXG_3D(T,a,A,b,B,x,0,x,y,z) MLXG_3D(T,a,A,b,B,y,1,x,y,z) MLXG_3D(T,a,A,b,B,z,2,x,y,z)
#define MLXG_3D(T,a,A,b,B,c,C,x,y,z) MLXG_SW(T,3,3,a##b##c,A,B,C) \
  MLXG_SW(T,3,4,a##b##c##x,A,B,C,0) MLXG_SW(T,3,4,a##b##c##y,A,B,C,1) \
  MLXG_SW(T,3,4,a##b##c##z,A,B,C,2)

#define MLXG_4A(T,x,y,z,w) MLXG_4B(T,x,0,x,y,z,w) MLXG_4B(T,y,1,x,y,z,w) \
  MLXG_4B(T,z,2,x,y,z,w) MLXG_4B(T,w,3,x,y,z,w)
#define MLXG_4B(T,a,A,x,y,z,w) MLXG_4C(T,a,A,x,0,x,y,z,w) MLXG_4C(T,a,A,y,1,x,y,z,w) \
  MLXG_4C(T,a,A,z,2,x,y,z,w) MLXG_4C(T,a,A,w,3,x,y,z,w)
#define MLXG_4C(T,a,A,b,B,x,y,z,w) MLXG_SW(T,4,2,a##b,A,B) \
  MLXG_4D(T,a,A,b,B,x,0,x,y,z,w) MLXG_4D(T,a,A,b,B,y,1,x,y,z,w) \
  MLXG_4D(T,a,A,b,B,z,2,x,y,z,w) MLXG_4D(T,a,A,b,B,w,3,x,y,z,w)
#define MLXG_4D(T,a,A,b,B,c,C,x,y,z,w) MLXG_SW(T,4,3,a##b##c,A,B,C) \
  MLXG_SW(T,4,4,a##b##c##x,A,B,C,0) MLXG_SW(T,4,4,a##b##c##y,A,B,C,1) \
  MLXG_SW(T,4,4,a##b##c##z,A,B,C,2) MLXG_SW(T,4,4,a##b##c##w,A,B,C,3)
// clang-format on

// What vectors of all widths have in common. The operators are friends that
// are no templates, so either side may be a scalar or a swizzle.
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
// The lower bits of the count say by how much.
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

// A vector is aligned to its size, and three lanes are as large as four.
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

// A packed vector is aligned to its lanes and computes as the vector V that it holds, whose
// friend operators are found because V is an argument of its template.
namespace detail {
#define MLXG_PACKED_COMMON(N)                                                          \
  packed() = default;                                                                  \
  packed(const packed&) = default;                                                     \
  MLXG_INLINE packed& operator=(const packed& v) {                                     \
    for (int i = 0; i < N; ++i)                                                        \
      data[i] = v.data[i];                                                             \
    return *this;                                                                      \
  }                                                                                    \
  MLXG_INLINE packed(const V& v) {                                                     \
    for (int i = 0; i < N; ++i)                                                        \
      data[i] = v.data[i];                                                             \
  }                                                                                    \
  template <class A, class = enable_if_t<is_convertible_v<A, V>>>                      \
  MLXG_INLINE packed(const A& a) : packed(V(a)) {}                                     \
  template <class U>                                                                   \
  MLXG_INLINE explicit packed(const vec<U, N>& v) : packed(V(v)) {}                    \
  template <class A, class B, class... C>                                              \
  MLXG_INLINE packed(const A& a, const B& b, const C&... c) : packed(V(a, b, c...)) {} \
  MLXG_INLINE operator V() const {                                                     \
    V v;                                                                               \
    for (int i = 0; i < N; ++i)                                                        \
      v.data[i] = data[i];                                                             \
    return v;                                                                          \
  }                                                                                    \
  MLXG_INLINE T& operator[](int i) {                                                   \
    return data[detail::element<N>(i)];                                                \
  }                                                                                    \
  MLXG_INLINE const T& operator[](int i) const {                                       \
    return data[detail::element<N>(i)];                                                \
  }                                                                                    \
  MLXG_ASSIGN(+)                                                                       \
  MLXG_ASSIGN(-)                                                                       \
  MLXG_ASSIGN(*)                                                                       \
  MLXG_ASSIGN(/)                                                                       \
  MLXG_ASSIGN(%)                                                                       \
  MLXG_ASSIGN(&)                                                                       \
  MLXG_ASSIGN(|)                                                                       \
  MLXG_ASSIGN(^)                                                                       \
  MLXG_ASSIGN(<<)                                                                      \
  MLXG_ASSIGN(>>)
#define MLXG_ASSIGN(OP)                              \
  MLXG_INLINE packed& operator OP## = (const V& v) { \
    return *this = V(*this) OP v;                    \
  }

template <class V, class T>
struct packed<V, T, 2> {
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
  MLXG_PACKED_COMMON(2)
};
template <class V, class T>
struct packed<V, T, 3> {
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
  MLXG_PACKED_COMMON(3)
};
template <class V, class T>
struct packed<V, T, 4> {
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
  MLXG_PACKED_COMMON(4)
};
#undef MLXG_PACKED_COMMON
#undef MLXG_ASSIGN
}  // namespace detail

#define MLXG_VECTOR_NAMES(T, NAME)           \
  using NAME##2 = vec<T, 2>;                 \
  using NAME##3 = vec<T, 3>;                 \
  using NAME##4 = vec<T, 4>;                 \
  using packed_##NAME##2 = packed_vec<T, 2>; \
  using packed_##NAME##3 = packed_vec<T, 3>; \
  using packed_##NAME##4 = packed_vec<T, 4>;
MLXG_VECTOR_NAMES(bool, bool)
MLXG_VECTOR_NAMES(char, char)
MLXG_VECTOR_NAMES(uchar, uchar)
MLXG_VECTOR_NAMES(short, short)
MLXG_VECTOR_NAMES(ushort, ushort)
MLXG_VECTOR_NAMES(int, int)
MLXG_VECTOR_NAMES(uint, uint)
MLXG_VECTOR_NAMES(long, long)
MLXG_VECTOR_NAMES(ulong, ulong)
MLXG_VECTOR_NAMES(half, half)
MLXG_VECTOR_NAMES(bfloat, bfloat)
MLXG_VECTOR_NAMES(float, float)
#undef MLXG_VECTOR_NAMES

// The bits of one type as another of the same size.
template <class To, class From>
MLXG_INLINE To as_type(const From& from) {
  static_assert(sizeof(To) == sizeof(From), "as_type needs types of one size");
  To to;
  __builtin_memcpy(&to, &from, sizeof(To));
  return to;
}

}  // namespace metal

#endif
