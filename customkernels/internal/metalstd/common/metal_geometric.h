// Metal's geometric functions.
#ifndef METAL_GEOMETRIC_H
#define METAL_GEOMETRIC_H

#include "metal_float.h"

namespace metal {

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

}  // namespace metal

#endif
