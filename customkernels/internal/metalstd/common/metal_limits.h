// Metal's numeric limits and mathematical constants.
#ifndef METAL_LIMITS_H
#define METAL_LIMITS_H

#include "metal_small_float.h"

namespace metal {

template <class T>
struct numeric_limits {
  static constexpr bool is_specialized = is_integral_v<T>;
  static constexpr bool is_signed = is_signed_v<T>;
  static constexpr bool is_integer = true;
  static constexpr bool has_infinity = false, has_quiet_NaN = false;
  static constexpr int digits = int(sizeof(T)) * 8 - (is_signed ? 1 : 0);
  static constexpr int digits10 = digits * 301 / 1000;
  MLXG_INLINE static constexpr T max() { return is_signed ? T((((T(1) << (digits - 1)) - 1) << 1) + 1) : T(~T(0)); }
  MLXG_INLINE static constexpr T min() { return is_signed ? T(-max() - 1) : T(0); }
  MLXG_INLINE static constexpr T lowest() { return min(); }
};
template <>
struct numeric_limits<bool> {
  static constexpr bool is_specialized = true, is_signed = false, is_integer = true;
  static constexpr int digits = 1;
  MLXG_INLINE static constexpr bool max() { return true; }
  MLXG_INLINE static constexpr bool min() { return false; }
  MLXG_INLINE static constexpr bool lowest() { return false; }
};

#define MLXG_FLOAT_LIMITS(T, DIGITS, EXP, MAX, MIN, EPS, DENORM)                       \
  template <>                                                                          \
  struct numeric_limits<T> {                                                           \
    static constexpr bool is_specialized = true, is_signed = true, is_integer = false; \
    static constexpr bool has_infinity = true, has_quiet_NaN = true;                   \
    static constexpr int digits = DIGITS, max_exponent = EXP, radix = 2;               \
    static constexpr int digits10 = (DIGITS - 1) * 301 / 1000;                         \
    MLXG_INLINE static constexpr T max() { return T(MAX); }                            \
    MLXG_INLINE static constexpr T min() { return T(MIN); }                            \
    MLXG_INLINE static constexpr T lowest() { return T(-(MAX)); }                      \
    MLXG_INLINE static constexpr T epsilon() { return T(EPS); }                        \
    MLXG_INLINE static constexpr T denorm_min() { return T(DENORM); }                  \
    MLXG_INLINE static constexpr T round_error() { return T(0.5f); }                   \
    MLXG_INLINE static constexpr T infinity() { return T(__builtin_inff()); }          \
    MLXG_INLINE static constexpr T quiet_NaN() { return T(__builtin_nanf("")); }       \
    MLXG_INLINE static constexpr T signaling_NaN() { return T(__builtin_nanf("")); }   \
  };
MLXG_FLOAT_LIMITS(float, 24, 128, MAXFLOAT, 0x1p-126f, 0x1p-23f, 0x1p-149f)
MLXG_FLOAT_LIMITS(half, 11, 16, 65504.0f, 0x1p-14f, 0x1p-10f, 0x1p-24f)
MLXG_FLOAT_LIMITS(bfloat, 8, 128, 0x1.fep127f, 0x1p-126f, 0x1p-7f, 0x1p-133f)
#undef MLXG_FLOAT_LIMITS

}  // namespace metal

#define CHAR_BIT 8
#define SCHAR_MAX 127
#define SCHAR_MIN (-128)
#define UCHAR_MAX 255
#define CHAR_MAX 127
#define CHAR_MIN (-128)
#define SHRT_MAX 32767
#define SHRT_MIN (-32768)
#define USHRT_MAX 65535
#define INT_MAX 2147483647
#define INT_MIN (-2147483647 - 1)
#define UINT_MAX 4294967295u
#define LONG_MAX 9223372036854775807l
#define LONG_MIN (-9223372036854775807l - 1)
#define ULONG_MAX 18446744073709551615ul
#define FLT_DIG 6
#define FLT_MANT_DIG 24
#define FLT_MAX 3.40282346638528859811704183484516925e+38f
#define FLT_MIN 0x1p-126f
#define FLT_EPSILON 0x1p-23f
#define MAXHALF HALF_MAX
#define HUGE_VALH (::metal::half(__builtin_inff()))
#define HALF_MAX (::metal::half(65504.0f))
#define HALF_MIN (::metal::half(0x1p-14f))
#define HALF_EPSILON (::metal::half(0x1p-10f))
#define M_E_F 2.71828182845904523536028747135266250f
#define M_LOG2E_F 1.44269504088896340735992468100189214f
#define M_LOG10E_F 0.434294481903251827651128918916605082f
#define M_LN2_F 0.693147180559945309417232121458176568f
#define M_LN10_F 2.30258509299404568401799145468436421f
#define M_PI_F 3.14159265358979323846264338327950288f
#define M_PI_2_F 1.57079632679489661923132169163975144f
#define M_PI_4_F 0.785398163397448309615660845819875721f
#define M_1_PI_F 0.318309886183790671537767526745028724f
#define M_2_PI_F 0.636619772367581343075535053490057448f
#define M_2_SQRTPI_F 1.12837916709551257389615890312154517f
#define M_SQRT2_F 1.41421356237309504880168872420969808f
#define M_SQRT1_2_F 0.707106781186547524400844362104849039f
#define M_E_H (::metal::half(M_E_F))
#define M_LOG2E_H (::metal::half(M_LOG2E_F))
#define M_LOG10E_H (::metal::half(M_LOG10E_F))
#define M_LN2_H (::metal::half(M_LN2_F))
#define M_LN10_H (::metal::half(M_LN10_F))
#define M_PI_H (::metal::half(M_PI_F))
#define M_PI_2_H (::metal::half(M_PI_2_F))
#define M_PI_4_H (::metal::half(M_PI_4_F))
#define M_1_PI_H (::metal::half(M_1_PI_F))
#define M_2_PI_H (::metal::half(M_2_PI_F))
#define M_2_SQRTPI_H (::metal::half(M_2_SQRTPI_F))
#define M_SQRT2_H (::metal::half(M_SQRT2_F))
#define M_SQRT1_2_H (::metal::half(M_SQRT1_2_F))

#endif
