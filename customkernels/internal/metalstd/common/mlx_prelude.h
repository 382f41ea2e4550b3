// The declarations that MLX puts before every custom kernel.
#ifndef MLX_PRELUDE_H
#define MLX_PRELUDE_H

#include "metal_math.h"
#include "metal_simd.h"
#include "mlx_complex.h"

typedef metal::half float16_t;
typedef metal::bfloat bfloat16_t;

// The largest and smallest value of a type: infinities if it has them.
template <class U>
MLXG_INLINE constexpr U mlxg_largest() {
  if constexpr (metal::is_floating_point_v<U>) {
    return metal::numeric_limits<U>::infinity();
  } else {
    return metal::numeric_limits<U>::max();
  }
}
template <class U>
MLXG_INLINE constexpr U mlxg_smallest() {
  if constexpr (metal::is_floating_point_v<U>) {
    return -metal::numeric_limits<U>::infinity();
  } else {
    return metal::numeric_limits<U>::min();
  }
}
template <class U>
struct Limits {
  static constexpr U finite_max = metal::numeric_limits<U>::max();
  static constexpr U finite_min = metal::numeric_limits<U>::lowest();
  static constexpr U max = mlxg_largest<U>();
  static constexpr U min = mlxg_smallest<U>();
};

// Returns the offset of element number `elem` of a strided array.
template <class Index = int64_t>
MLXG_INLINE Index elem_to_loc(Index elem, const int* shape, const int64_t* strides, int ndim) {
  Index at = 0;
  for (int i = ndim - 1; i >= 0 && elem > 0; --i) {
    at += (elem % shape[i]) * Index(strides[i]);
    elem /= shape[i];
  }
  return at;
}
template <class Index = int64_t>
MLXG_INLINE Index elem_to_loc(metal::uint3 elem, const int* shape, const int64_t* strides, int ndim) {
  Index at = elem.x * Index(strides[ndim - 1]) + elem.y * Index(strides[ndim - 2]);
  for (int i = ndim - 3; i >= 0; --i) {
    at += (elem.z % shape[i]) * Index(strides[i]);
    elem.z /= shape[i];
  }
  return at;
}

template <class T, class U>
MLXG_INLINE T ceildiv(T n, U m) {
  return (n + m - 1) / m;
}

template <bool condition, class T, class U>
struct ConditionalType {
  using type = metal::conditional_t<condition, T, U>;
};

MLXG_INLINE float log1p(float x) {
  return __builtin_log1pf(x);
}
MLXG_INLINE bfloat16_t log1p(bfloat16_t x) {
  return bfloat16_t(__builtin_log1pf(float(x)));
}

#endif
