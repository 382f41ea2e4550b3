// The operations of reductions and scans over the lanes of a simdgroup.
#ifndef METAL_REDUCE_H
#define METAL_REDUCE_H

#include "metal_vec.h"

namespace mlxg {

// Applies f to each lane of vectors, or to scalars.
template <class T, class F>
MLXG_INLINE T lanewise(const T& a, const T& b, F f) {
  if constexpr (metal::detail::lanes<T> > 1) {
    T r;
    for (int i = 0; i < T::lanes; ++i) {
      r.data[i] = f(a.data[i], b.data[i]);
    }
    return r;
  } else {
    return f(a, b);
  }
}
template <class T>
using lane_type = metal::detail::scalar_of<T>;

// Each operation has an identity, which stands for inactive lanes. `start` is the result of the first lane in an
// exclusive scan.
struct op_sum {
  // The identity of addition is -0: a sum of negative zeros stays -0.
  template <class T>
  MLXG_INLINE static T identity() {
    using S = lane_type<T>;
    if constexpr (metal::is_floating_point_v<S>) {
      return T(S(-0.0f));
    } else {
      return T(S(0));
    }
  }
  template <class T>
  MLXG_INLINE static T start() {
    return T(lane_type<T>(0));
  }
  template <class T>
  MLXG_INLINE static T combine(T a, T b) {
    return T(a + b);
  }
};
struct op_product {
  template <class T>
  MLXG_INLINE static T identity() {
    return T(lane_type<T>(1));
  }
  template <class T>
  MLXG_INLINE static T start() {
    return identity<T>();
  }
  template <class T>
  MLXG_INLINE static T combine(T a, T b) {
    return T(a * b);
  }
};
// The minimum of a NaN and a number is the number, as in fmin. op_max does the same.
struct op_min {
  template <class T>
  MLXG_INLINE static T identity() {
    using S = lane_type<T>;
    if constexpr (metal::is_floating_point_v<S>) {
      return T(metal::numeric_limits<S>::quiet_NaN());
    } else {
      return T(metal::numeric_limits<S>::max());
    }
  }
  template <class T>
  MLXG_INLINE static T combine(T a, T b) {
    return lanewise(a, b, [](auto x, auto y) { return y < x || x != x ? y : x; });
  }
};
struct op_max {
  template <class T>
  MLXG_INLINE static T identity() {
    using S = lane_type<T>;
    if constexpr (metal::is_floating_point_v<S>) {
      return T(metal::numeric_limits<S>::quiet_NaN());
    } else {
      return T(metal::numeric_limits<S>::lowest());
    }
  }
  template <class T>
  MLXG_INLINE static T combine(T a, T b) {
    return lanewise(a, b, [](auto x, auto y) { return x < y || x != x ? y : x; });
  }
};
struct op_and {
  template <class T>
  MLXG_INLINE static T identity() {
    return T(lane_type<T>(~lane_type<T>(0)));
  }
  template <class T>
  MLXG_INLINE static T combine(T a, T b) {
    return T(a & b);
  }
};
struct op_or {
  template <class T>
  MLXG_INLINE static T identity() {
    return T(lane_type<T>(0));
  }
  template <class T>
  MLXG_INLINE static T combine(T a, T b) {
    return T(a | b);
  }
};
struct op_xor {
  template <class T>
  MLXG_INLINE static T identity() {
    return T(lane_type<T>(0));
  }
  template <class T>
  MLXG_INLINE static T combine(T a, T b) {
    return T(a ^ b);
  }
};

}  // namespace mlxg

#endif
