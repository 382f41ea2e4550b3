// Swizzles of vectors.
#ifndef METAL_SWIZZLE_H
#define METAL_SWIZZLE_H

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

// A swizzle such as v.zyx. It shares a union with the lanes of its vector, so it takes no space. It converts to a V. It
// can be assigned if it names no lane twice.
//
// V is a template argument so that argument-dependent lookup finds the friend operators of V.
template <class V, class T, int N, int... I>
struct swizzle {
  T data[N];

  // The user-declared constructor keeps the type from being an aggregate. In an assignment of {x, y}, an aggregate
  // would take x and y as its first lanes.
  explicit swizzle() = default;
  swizzle(const swizzle&) = default;
  MLXG_INLINE constexpr operator V() const { return V(data[I]...); }
  // Constant, because an assignment to this copy would have no effect.
  MLXG_INLINE constexpr const V operator()() const { return *this; }
  MLXG_INLINE swizzle& operator=(const V& v) {
    int lane = 0;
    ((data[I] = v.data[lane++]), ...);
    return *this;
  }
  // The implicit operator would also copy the other lanes.
  MLXG_INLINE swizzle& operator=(const swizzle& s) { return *this = V(s); }
  MLXG_INLINE T operator[](int lane) const { return V(*this)[lane]; }
};

// These are not members: a vector of four lanes has more than three hundred swizzles, each a class of its own.
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
// The number of lanes of a type and their scalar type. n is 0 if the type is neither a scalar nor a vector.
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
// One instruction converts all lanes.
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

// Declares every swizzle: all names of two to four letters. Each level of macros fixes one more letter, and from the
// second on declares the name so far.
#define MLXG_SW(T, N, K, NAME, ...) swizzle<vec<T, K>, T, N, __VA_ARGS__> NAME;

#define MLXG_2A(T, x, y) MLXG_2B(T, x, 0, x, y) MLXG_2B(T, y, 1, x, y)
#define MLXG_2B(T, a, A, x, y) MLXG_2C(T, a, A, x, 0, x, y) MLXG_2C(T, a, A, y, 1, x, y)
#define MLXG_2C(T, a, A, b, B, x, y) \
  MLXG_SW(T, 2, 2, a##b, A, B)       \
  MLXG_2D(T, a, A, b, B, x, 0, x, y) MLXG_2D(T, a, A, b, B, y, 1, x, y)
#define MLXG_2D(T, a, A, b, B, c, C, x, y) \
  MLXG_SW(T, 2, 3, a##b##c, A, B, C)       \
  MLXG_SW(T, 2, 4, a##b##c##x, A, B, C, 0) MLXG_SW(T, 2, 4, a##b##c##y, A, B, C, 1)

#define MLXG_3A(T, x, y, z) MLXG_3B(T, x, 0, x, y, z) MLXG_3B(T, y, 1, x, y, z) MLXG_3B(T, z, 2, x, y, z)
#define MLXG_3B(T, a, A, x, y, z) \
  MLXG_3C(T, a, A, x, 0, x, y, z) MLXG_3C(T, a, A, y, 1, x, y, z) MLXG_3C(T, a, A, z, 2, x, y, z)
#define MLXG_3C(T, a, A, b, B, x, y, z) \
  MLXG_SW(T, 3, 2, a##b, A, B)          \
  MLXG_3D(T, a, A, b, B, x, 0, x, y, z) MLXG_3D(T, a, A, b, B, y, 1, x, y, z) MLXG_3D(T, a, A, b, B, z, 2, x, y, z)
#define MLXG_3D(T, a, A, b, B, c, C, x, y, z) \
  MLXG_SW(T, 3, 3, a##b##c, A, B, C)          \
  MLXG_SW(T, 3, 4, a##b##c##x, A, B, C, 0)    \
  MLXG_SW(T, 3, 4, a##b##c##y, A, B, C, 1) MLXG_SW(T, 3, 4, a##b##c##z, A, B, C, 2)

#define MLXG_4A(T, x, y, z, w) \
  MLXG_4B(T, x, 0, x, y, z, w) MLXG_4B(T, y, 1, x, y, z, w) MLXG_4B(T, z, 2, x, y, z, w) MLXG_4B(T, w, 3, x, y, z, w)
#define MLXG_4B(T, a, A, x, y, z, w) \
  MLXG_4C(T, a, A, x, 0, x, y, z, w) \
  MLXG_4C(T, a, A, y, 1, x, y, z, w) MLXG_4C(T, a, A, z, 2, x, y, z, w) MLXG_4C(T, a, A, w, 3, x, y, z, w)
#define MLXG_4C(T, a, A, b, B, x, y, z, w) \
  MLXG_SW(T, 4, 2, a##b, A, B)             \
  MLXG_4D(T, a, A, b, B, x, 0, x, y, z, w) \
  MLXG_4D(T, a, A, b, B, y, 1, x, y, z, w) \
  MLXG_4D(T, a, A, b, B, z, 2, x, y, z, w) MLXG_4D(T, a, A, b, B, w, 3, x, y, z, w)
#define MLXG_4D(T, a, A, b, B, c, C, x, y, z, w) \
  MLXG_SW(T, 4, 3, a##b##c, A, B, C)             \
  MLXG_SW(T, 4, 4, a##b##c##x, A, B, C, 0)       \
  MLXG_SW(T, 4, 4, a##b##c##y, A, B, C, 1)       \
  MLXG_SW(T, 4, 4, a##b##c##z, A, B, C, 2) MLXG_SW(T, 4, 4, a##b##c##w, A, B, C, 3)

}  // namespace metal

#endif
