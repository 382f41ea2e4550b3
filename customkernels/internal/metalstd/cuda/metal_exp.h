// CUDA's exponentials and logarithms, within 2 ulp.
#ifndef METAL_EXP_H
#define METAL_EXP_H

#include "metal_scalar.h"

namespace metal {
namespace detail {

MLXG_INLINE float exp1(float x) {
  return ::expf(x);
}
MLXG_INLINE float exp2_1(float x) {
  return ::exp2f(x);
}
// One or two instructions, with an error of 2 ulp of a power of 2. Results below 2^−126 are 0.
MLXG_INLINE float fast_exp1(float x) {
  return ::__expf(x);
}
MLXG_INLINE float fast_exp2_1(float x) {
  float power;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(x));
  return power;
}
MLXG_INLINE float exp10_1(float x) {
  return ::exp10f(x);
}
MLXG_INLINE float log1(float x) {
  return ::logf(x);
}
MLXG_INLINE float log2_1(float x) {
  return ::log2f(x);
}
MLXG_INLINE float log10_1(float x) {
  return ::log10f(x);
}
MLXG_INLINE float tanh1(float x) {
  return ::tanhf(x);
}

}  // namespace detail
}  // namespace metal

#endif
