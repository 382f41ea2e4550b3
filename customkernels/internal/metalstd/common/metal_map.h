// Elementwise application of functions to scalars and vectors, with the types of operands and results.
#ifndef METAL_MAP_H
#define METAL_MAP_H

#include "metal_vec.h"

namespace metal {

namespace detail {

// The common type of operands of types A and B, by C's usual arithmetic conversions. half and bfloat together give
// float. double stands for a literal without a suffix and counts as float.
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

// A vector of N lanes, or the scalar if N is 1.
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
  // The operand that is a vector determines the lane type if the other one is a scalar.
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

// Returns lane i of a scalar or vector, as an S.
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

// Applies f to each lane. It computes in the common type of the operands, which is the type of the result.
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

// The type of the result of a floating-point function.
template <class... A>
struct floating {
  using S = typename widest<A...>::scalar;
  // Integers give float results, half and bfloat their own.
  using scalar = conditional_t<is_integral_v<S> || is_same_v<S, double>, float, S>;
  using type = typename shape<scalar, widest<A...>::n>::type;
};
template <class... A>
using float_result_of = typename floating<enable_if_t<(widest<A...>::n > 0), A>...>::type;

// Applies f to each lane as float, and rounds once to the type of the result.
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

}  // namespace metal

#endif
