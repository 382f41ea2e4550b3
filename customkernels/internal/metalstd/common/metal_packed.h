// Metal's packed vectors.
#ifndef METAL_PACKED_H
#define METAL_PACKED_H

#include "metal_vector.h"

namespace metal {

// A packed vector has the alignment of its lanes. It converts to the vector V for arithmetic. V is a template argument
// so that argument-dependent lookup finds the friend operators of V.
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

}  // namespace metal

#endif
