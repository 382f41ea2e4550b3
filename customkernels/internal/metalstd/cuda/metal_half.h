// The conversions of Metal's 16-bit floating-point types, by the GPU's own instructions.
// metal_scalar.h includes it; MLX puts the headers of CUDA's types before a custom kernel.
#ifndef METAL_HALF_H
#define METAL_HALF_H

namespace metal {
namespace detail {

MLXG_INLINE float half_to_float(uint16_t h) {
  return __half2float(__ushort_as_half(h));
}
MLXG_INLINE uint16_t float_to_half(float f) {
  return __half_as_ushort(__float2half_rn(f));
}

MLXG_INLINE constexpr float bfloat_to_float(uint16_t b) {
  return __builtin_bit_cast(float, uint32_t(b) << 16);
}
MLXG_INLINE constexpr uint16_t float_to_bfloat(float f) {
  if (!__builtin_is_constant_evaluated()) {
    return __bfloat16_as_ushort(__float2bfloat16_rn(f));
  }
  const uint32_t bits = __builtin_bit_cast(uint32_t, f);
  if ((bits & 0x7fffffffu) > 0x7f800000u) {
    return uint16_t(bits >> 16 | 0x40u);
  }
  return uint16_t((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

}  // namespace detail
}  // namespace metal

#endif
