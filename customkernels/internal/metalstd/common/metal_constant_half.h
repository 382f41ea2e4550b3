// Conversions of 16-bit floating-point numbers that constant expressions may use.
#ifndef METAL_CONSTANT_HALF_H
#define METAL_CONSTANT_HALF_H

#include "metal_traits.h"

namespace metal {

namespace detail {
// binary32 to binary16, rounded to nearest even.
MLXG_INLINE constexpr uint16_t constant_half(float f) {
  const uint32_t bits = __builtin_bit_cast(uint32_t, f);
  const uint32_t sign = (bits >> 16) & 0x8000u;
  const uint32_t rest = bits & 0x7fffffffu;
  if (rest > 0x7f800000u) {
    return uint16_t(sign | 0x7e00u | (rest >> 13 & 0x1ffu));
  }
  if (rest >= 0x477ff000u) {
    return uint16_t(sign | 0x7c00u);
  }
  if (rest < 0x38800000u) {
    const float sum = __builtin_bit_cast(float, rest) + 0.5f;
    return uint16_t(sign | (__builtin_bit_cast(uint32_t, sum) - 0x3f000000u));
  }
  return uint16_t(sign | ((rest - 0x38000000u + 0xfffu + (rest >> 13 & 1u)) >> 13));
}
MLXG_INLINE constexpr float constant_half_to_float(uint16_t h) {
  const uint32_t sign = uint32_t(h & 0x8000u) << 16;
  const uint32_t rest = h & 0x7fffu;
  if (rest >= 0x7c00u) {
    return __builtin_bit_cast(float, sign | 0x7f800000u | (rest - 0x7c00u) << 13 | (rest > 0x7c00u ? 0x400000u : 0u));
  }
  const float magnitude = __builtin_bit_cast(float, rest << 13) * 0x1p112f;
  return __builtin_bit_cast(float, sign | __builtin_bit_cast(uint32_t, magnitude));
}

MLXG_INLINE constexpr float bfloat_to_float(uint16_t b) {
  return __builtin_bit_cast(float, uint32_t(b) << 16);
}
// binary32 to bfloat16, rounded to nearest even.
MLXG_INLINE constexpr uint16_t constant_bfloat(float f) {
  const uint32_t bits = __builtin_bit_cast(uint32_t, f);
  if ((bits & 0x7fffffffu) > 0x7f800000u) {
    return uint16_t(bits >> 16 | 0x40u);
  }
  return uint16_t((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}
}  // namespace detail
}  // namespace metal

#endif
