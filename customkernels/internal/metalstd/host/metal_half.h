// The conversions of Metal's 16-bit floating-point types. metal_scalar.h includes it.
#ifndef METAL_HALF_H
#define METAL_HALF_H

namespace metal {
namespace detail {

// The conversions of half are arithmetic without branches rather than F16C's
// instructions, of which compilers make one for each element: this they vectorise,
// and a row of halves converts several times faster.

// IEEE binary16 to binary32: exact.
MLXG_INLINE float half_to_float(uint16_t h) {
#if defined(__aarch64__)
  return float(__builtin_bit_cast(__fp16, h));
#else
  const uint32_t sign = uint32_t(h & 0x8000u) << 16;
  const uint32_t rest = uint32_t(h & 0x7fffu) << 13;
  // A shift rebiases normal and subnormal numbers alike: the factor is
  // exact, and makes a subnormal half the normal float it equals.
  const uint32_t finite = __builtin_bit_cast(uint32_t, __builtin_bit_cast(float, rest) * 0x1p112f);
  // Infinity keeps a mantissa of 0; a NaN is made quiet, as hardware does.
  const uint32_t quiet = rest > 0x0f800000u ? 0x7fc00000u : 0x7f800000u;
  return __builtin_bit_cast(float, sign | (rest >= 0x0f800000u ? rest | quiet : finite));
#endif
}

// binary32 to binary16, rounded to nearest, ties to even.
MLXG_INLINE uint16_t float_to_half(float f) {
#if defined(__aarch64__)
  return __builtin_bit_cast(uint16_t, __fp16(f));
#else
  const uint32_t bits = __builtin_bit_cast(uint32_t, f);
  const uint32_t sign = (bits >> 16) & 0x8000u;
  const uint32_t rest = bits & 0x7fffffffu;
  const uint32_t normal = (rest - 0x38000000u + 0xfffu + (rest >> 13 & 1u)) >> 13;
  // Below the smallest normal half: adding 0.5 leaves the bits of a
  // subnormal half at the end of the sum, rounded by the addition.
  const uint32_t subnormal = __builtin_bit_cast(uint32_t, __builtin_bit_cast(float, rest) + 0.5f) - 0x3f000000u;
  const uint32_t nan = 0x7e00u | (rest >> 13 & 0x1ffu);
  uint32_t result = rest < 0x38800000u ? subnormal : normal;
  result = rest >= 0x477ff000u ? 0x7c00u : result;  // 65520 and above
  result = rest > 0x7f800000u ? nan : result;
  return uint16_t(sign | result);
#endif
}

MLXG_INLINE constexpr float bfloat_to_float(uint16_t b) {
  return __builtin_bit_cast(float, uint32_t(b) << 16);
}

MLXG_INLINE constexpr uint16_t float_to_bfloat(float f) {
  const uint32_t bits = __builtin_bit_cast(uint32_t, f);
  if ((bits & 0x7fffffffu) > 0x7f800000u) {
    return uint16_t(bits >> 16 | 0x40u);
  }
  return uint16_t((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

}  // namespace detail
}  // namespace metal

#endif
