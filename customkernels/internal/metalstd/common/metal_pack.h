// Metal's functions that pack vectors into integers.
#ifndef METAL_PACK_H
#define METAL_PACK_H

#include "metal_common.h"
#include "metal_float.h"

namespace metal {

// Packs and unpacks lanes of BITS bits, the first in the lowest bits. A lane is a fixed-point number in [0, 1], or in
// [-1, 1] if SIGNED.
namespace detail {
template <int BITS, bool SIGNED, class V>
MLXG_INLINE uint pack(const V& v) {
  constexpr float top = float((1 << (SIGNED ? BITS - 1 : BITS)) - 1);
  uint word = 0;
  for (int i = 0; i < 32 / BITS; ++i) {
    const float x = clamp(float(v.data[i]), SIGNED ? -1.0f : 0.0f, 1.0f);
    word |= (uint(int(rint(x * top))) & ((1u << BITS) - 1)) << (BITS * i);
  }
  return word;
}
template <int BITS, bool SIGNED, class V>
MLXG_INLINE V unpack(uint word) {
  constexpr float top = float((1 << (SIGNED ? BITS - 1 : BITS)) - 1);
  V v;
  for (int i = 0; i < 32 / BITS; ++i) {
    const uint lane = word << (32 - BITS - BITS * i);
    const float x = SIGNED ? float(int(lane) >> (32 - BITS)) : float(lane >> (32 - BITS));
    v.data[i] = scalar_of<V>(max(x / top, -1.0f));
  }
  return v;
}
}  // namespace detail
#define MLXG_PACK(KIND, LANES, BITS, SIGNED, T)                                   \
  MLXG_INLINE uint pack_##T##_to_##KIND##LANES##x##BITS(const vec<T, LANES>& v) { \
    return detail::pack<BITS, SIGNED>(v);                                         \
  }                                                                               \
  MLXG_INLINE vec<T, LANES> unpack_##KIND##LANES##x##BITS##_to_##T(uint word) {   \
    return detail::unpack<BITS, SIGNED, vec<T, LANES>>(word);                     \
  }
MLXG_PACK(unorm, 4, 8, false, float)
MLXG_PACK(snorm, 4, 8, true, float)
MLXG_PACK(unorm, 2, 16, false, float)
MLXG_PACK(snorm, 2, 16, true, float)
MLXG_PACK(unorm, 4, 8, false, half)
MLXG_PACK(snorm, 4, 8, true, half)
MLXG_PACK(unorm, 2, 16, false, half)
MLXG_PACK(snorm, 2, 16, true, half)
#undef MLXG_PACK

}  // namespace metal

#endif
