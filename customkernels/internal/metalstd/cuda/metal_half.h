// Conversions of half and bfloat by the GPU's instructions. MLX includes the headers of CUDA's types before a custom
// kernel.
#ifndef METAL_HALF_H
#define METAL_HALF_H

#include "metal_constant_half.h"

namespace metal {
namespace detail {

MLXG_INLINE float half_to_float(uint16_t h) {
  return __half2float(__ushort_as_half(h));
}
MLXG_INLINE uint16_t float_to_half(float f) {
  return __half_as_ushort(__float2half_rn(f));
}

MLXG_INLINE constexpr uint16_t float_to_bfloat(float f) {
  return __builtin_is_constant_evaluated() ? constant_bfloat(f) : __bfloat16_as_ushort(__float2bfloat16_rn(f));
}

}  // namespace detail
}  // namespace metal

#endif
