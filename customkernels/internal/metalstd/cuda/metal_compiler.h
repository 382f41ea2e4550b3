// Macros and functions of the library that depend on the compiler, for NVRTC. It requires __device__ on functions and
// lacks most of GCC's builtins.
#ifndef METAL_COMPILER_H
#define METAL_COMPILER_H

// MLX's prelude defines inf as a macro, which would replace the word in shaders.
#undef inf

// The CUDA headers that MLX includes define these, and metal_limits.h defines them again.
#undef CHAR_BIT
#undef SCHAR_MAX
#undef SCHAR_MIN
#undef UCHAR_MAX
#undef CHAR_MAX
#undef CHAR_MIN
#undef SHRT_MAX
#undef SHRT_MIN
#undef USHRT_MAX
#undef INT_MAX
#undef INT_MIN
#undef UINT_MAX
#undef LONG_MAX
#undef LONG_MIN
#undef ULONG_MAX
#undef FLT_DIG
#undef FLT_MANT_DIG
#undef FLT_MAX
#undef FLT_MIN
#undef FLT_EPSILON
#undef INFINITY
#undef NAN
#undef HUGE_VALF

#define MLXG_DEVICE __device__
#define MLXG_UMUL64HI(a, b) __umul64hi(a, b)
#define MLXG_MUL64HI(a, b) __mul64hi(a, b)
// Within 2 ulp, as in Metal. A square root and a division take 40 instructions.
#define MLXG_RSQRT(x) ::rsqrtf(x)
#define MLX_MTL_PRAGMA_UNROLL _Pragma("unroll")
#define METAL_FUNC __device__ __forceinline__
#define MLXG_INLINE __device__ __forceinline__

namespace mlxg {
// One instruction each.
MLXG_INLINE float smaller(float a, float b) {
  return ::fminf(a, b);
}
MLXG_INLINE float larger(float a, float b) {
  return ::fmaxf(a, b);
}
MLXG_INLINE constexpr unsigned long long swap_bytes(unsigned long long v) {
  v = (v >> 8 & 0x00ff00ff00ff00ffu) | (v & 0x00ff00ff00ff00ffu) << 8;
  v = (v >> 16 & 0x0000ffff0000ffffu) | (v & 0x0000ffff0000ffffu) << 16;
  return v >> 32 | v << 32;
}
template <class S>
MLXG_INLINE bool add_overflows(S a, S b, S* sum) {
  *sum = S((unsigned long long)a + (unsigned long long)b);
  return S(-1) > S(0) ? *sum < a : (b < S(0)) != (*sum < a);
}
template <class S>
MLXG_INLINE bool sub_overflows(S a, S b, S* difference) {
  *difference = S((unsigned long long)a - (unsigned long long)b);
  return S(-1) > S(0) ? a < b : (b > S(0)) != (*difference < a);
}
}  // namespace mlxg

#define __builtin_inff() __builtin_bit_cast(float, 0x7f800000u)
#define __builtin_nanf(text) __builtin_bit_cast(float, 0x7fc00000u)
#define __builtin_acosf ::acosf
#define __builtin_acoshf ::acoshf
#define __builtin_asinf ::asinf
#define __builtin_asinhf ::asinhf
#define __builtin_atanf ::atanf
#define __builtin_atanhf ::atanhf
#define __builtin_atan2f ::atan2f
#define __builtin_cosf ::cosf
#define __builtin_coshf ::coshf
#define __builtin_powf ::powf
#define __builtin_sqrtf ::sqrtf
#define __builtin_sinf ::sinf
#define __builtin_sinhf ::sinhf
#define __builtin_tanf ::tanf
#define __builtin_ceilf ::ceilf
#define __builtin_floorf ::floorf
#define __builtin_truncf ::truncf
#define __builtin_rintf ::rintf
#define __builtin_roundf ::roundf
#define __builtin_fabsf ::fabsf
#define __builtin_fmodf ::fmodf
#define __builtin_fminf ::fminf
#define __builtin_fmaxf ::fmaxf
#define __builtin_fdimf ::fdimf
#define __builtin_copysignf ::copysignf
#define __builtin_fmaf ::fmaf
#define __builtin_nextafterf ::nextafterf
#define __builtin_frexpf ::frexpf
#define __builtin_ldexpf ::ldexpf
#define __builtin_ilogbf ::ilogbf
#define __builtin_log1pf ::log1pf
#define __builtin_popcountll __popcll
#define __builtin_clzll __clzll
#define __builtin_ctzll(v) (__ffsll(v) - 1)
#define __builtin_ctz(v) (__ffs(int(v)) - 1)
#define __builtin_bswap64 ::mlxg::swap_bytes
#define __builtin_add_overflow ::mlxg::add_overflows
#define __builtin_sub_overflow ::mlxg::sub_overflows
#define __builtin_memcpy ::memcpy

#endif
