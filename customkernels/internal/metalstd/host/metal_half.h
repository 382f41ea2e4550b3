// Conversions of half and bfloat.
#ifndef METAL_HALF_H
#define METAL_HALF_H

#include "metal_constant_half.h"

namespace metal {
namespace detail {

// The conversions of half are arithmetic without branches, which compilers vectorize: a row of halves converts several
// times faster than with F16C's instructions, which compilers apply to one element at a time.

// Converts binary16 to binary32, exactly.
MLXG_INLINE float half_to_float(uint16_t h) {
#if defined(__aarch64__)
  return float(__builtin_bit_cast(__fp16, h));
#else
  const uint32_t sign = uint32_t(h & 0x8000u) << 16;
  const uint32_t rest = uint32_t(h & 0x7fffu) << 13;
  // The multiplication rebiases the exponent. It is exact, and also normalizes subnormal numbers.
  const uint32_t finite = __builtin_bit_cast(uint32_t, __builtin_bit_cast(float, rest) * 0x1p112f);
  // Infinity has a mantissa of 0. A NaN becomes quiet, as in hardware.
  const uint32_t quiet = rest > 0x0f800000u ? 0x7fc00000u : 0x7f800000u;
  return __builtin_bit_cast(float, sign | (rest >= 0x0f800000u ? rest | quiet : finite));
#endif
}

// Converts binary32 to binary16, rounded to nearest even.
MLXG_INLINE uint16_t float_to_half(float f) {
#if defined(__aarch64__)
  return __builtin_bit_cast(uint16_t, __fp16(f));
#else
  const uint32_t bits = __builtin_bit_cast(uint32_t, f);
  const uint32_t sign = (bits >> 16) & 0x8000u;
  const uint32_t rest = bits & 0x7fffffffu;
  const uint32_t normal = (rest - 0x38000000u + 0xfffu + (rest >> 13 & 1u)) >> 13;
  // Subnormal results: adding 0.5 rounds, and leaves the bits of the half at the end of the sum.
  const uint32_t subnormal = __builtin_bit_cast(uint32_t, __builtin_bit_cast(float, rest) + 0.5f) - 0x3f000000u;
  const uint32_t nan = 0x7e00u | (rest >> 13 & 0x1ffu);
  uint32_t result = rest < 0x38800000u ? subnormal : normal;
  result = rest >= 0x477ff000u ? 0x7c00u : result;  // 65520 and above
  result = rest > 0x7f800000u ? nan : result;
  return uint16_t(sign | result);
#endif
}

MLXG_INLINE constexpr uint16_t float_to_bfloat(float f) {
  return constant_bfloat(f);
}

}  // namespace detail
}  // namespace metal

#endif
