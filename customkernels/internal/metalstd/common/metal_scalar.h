// Metal's scalar types, type traits and numeric limits.
#ifndef METAL_SCALAR_H
#define METAL_SCALAR_H

#include "metal_compiler.h"

typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned int uint;
typedef unsigned long ulong;

#define INFINITY (__builtin_inff())
#define NAN (__builtin_nanf(""))
#define HUGE_VALF (__builtin_inff())
// Metal 3.1, the first with bfloat. Package msl and its address-space check have the same version.
#define __METAL__ 1
#define __METAL_VERSION__ 310
#define __HAVE_BFLOAT__ 1
#define MAXFLOAT 3.40282346638528859811704183484516925e+38f

#ifdef MLXG_CHECKED
// Not from mlxg_calls.h: the text for CUDA takes in whatever this file includes.
extern "C" void mlxg_checked_index(int64_t index, uint32_t size);
#endif

namespace metal {

using ::int16_t;
using ::int32_t;
using ::int64_t;
using ::int8_t;
using ::ptrdiff_t;
using ::size_t;
using ::uint16_t;
using ::uint32_t;
using ::uint64_t;
using ::uint8_t;

namespace detail {
struct nothing;  // what no argument is
}

// ---- type traits ----

template <class T, T v>
struct integral_constant {
  static constexpr T value = v;
  using value_type = T;
  using type = integral_constant;
  MLXG_INLINE constexpr operator T() const { return v; }
  MLXG_INLINE constexpr T operator()() const { return v; }
};
template <bool b>
using bool_constant = integral_constant<bool, b>;
using true_type = bool_constant<true>;
using false_type = bool_constant<false>;

template <bool, class T = void>
struct enable_if {};
template <class T>
struct enable_if<true, T> {
  using type = T;
};
template <bool b, class T = void>
using enable_if_t = typename enable_if<b, T>::type;

template <bool, class A, class B>
struct conditional {
  using type = A;
};
template <class A, class B>
struct conditional<false, A, B> {
  using type = B;
};
template <bool b, class A, class B>
using conditional_t = typename conditional<b, A, B>::type;

template <class A, class B>
struct is_same : false_type {};
template <class A>
struct is_same<A, A> : true_type {};
template <class A, class B>
constexpr bool is_same_v = is_same<A, B>::value;

template <class T>
struct remove_reference {
  using type = T;
};
template <class T>
struct remove_reference<T&> {
  using type = T;
};
template <class T>
struct remove_reference<T&&> {
  using type = T;
};
template <class T>
using remove_reference_t = typename remove_reference<T>::type;

template <class T>
struct remove_cv {
  using type = T;
};
template <class T>
struct remove_cv<const T> {
  using type = T;
};
template <class T>
struct remove_cv<volatile T> {
  using type = T;
};
template <class T>
struct remove_cv<const volatile T> {
  using type = T;
};
template <class T>
using remove_cv_t = typename remove_cv<T>::type;
template <class T>
using remove_const_t = typename remove_cv<T>::type;
template <class T>
using remove_cvref_t = remove_cv_t<remove_reference_t<T>>;
template <class T>
using decay_t = remove_cvref_t<T>;

template <class T>
struct remove_pointer {
  using type = T;
};
template <class T>
struct remove_pointer<T*> {
  using type = T;
};
template <class T>
using remove_pointer_t = typename remove_pointer<T>::type;
template <class T>
using add_pointer_t = remove_reference_t<T>*;

// The rewriter has removed the address spaces themselves.
template <class T>
using remove_addrspace_t = T;
template <class T>
struct remove_addrspace {
  using type = T;
};

template <class... B>
struct conjunction : bool_constant<(... && bool(B::value))> {};
template <class... B>
struct disjunction : bool_constant<(... || bool(B::value))> {};
template <class B>
struct negation : bool_constant<!bool(B::value)> {};
template <class... B>
constexpr bool conjunction_v = conjunction<B...>::value;
template <class... B>
constexpr bool disjunction_v = disjunction<B...>::value;
template <class B>
constexpr bool negation_v = negation<B>::value;
// The names that Apple's own headers use, and MLX after them.
template <class... B>
using _conjunction = conjunction<B...>;
template <class... B>
using _disjunction = disjunction<B...>;

// A value that is the same for all threads: a promise that costs nothing here.
template <class T>
using uniform = T;
template <class T>
MLXG_INLINE constexpr T make_uniform(T v) {
  return v;
}

namespace detail {
// element is an index into n elements. Of those that a reference is made of, the compilers' own
// check lets the one behind the last pass.
template <unsigned n, class I>
MLXG_INLINE constexpr I element(I i) {
#ifdef MLXG_CHECKED
  if (size_t(i) >= n) {
    mlxg_checked_index(int64_t(i), n);
  }
#endif
  return i;
}
}  // namespace detail

template <class T, size_t N>
struct array {
  T elements[N];
  MLXG_INLINE static constexpr size_t size() { return N; }
  MLXG_INLINE constexpr T& operator[](size_t i) { return elements[detail::element<N>(i)]; }
  MLXG_INLINE constexpr const T& operator[](size_t i) const { return elements[detail::element<N>(i)]; }
};

template <class T>
MLXG_DEVICE T&& declval();

namespace detail {
template <class...>
using exists = void;
template <class B>
MLXG_DEVICE void accept(B);
template <class A, class B, class = void>
constexpr bool converts = false;
template <class A, class B>
constexpr bool converts<A, B, exists<decltype(accept<B>(declval<A>()))>> = true;
}  // namespace detail
template <class A, class B>
constexpr bool is_convertible_v = detail::converts<A, B>;
template <class A, class B>
struct is_convertible : bool_constant<is_convertible_v<A, B>> {};

struct half;
struct bfloat;

namespace detail {
template <class T>
constexpr int scalar_rank = 0;  // 1 bool, 2 integer, 3 floating
template <>
inline constexpr int scalar_rank<bool> = 1;
template <>
inline constexpr int scalar_rank<char> = 2;
template <>
inline constexpr int scalar_rank<signed char> = 2;
template <>
inline constexpr int scalar_rank<unsigned char> = 2;
template <>
inline constexpr int scalar_rank<short> = 2;
template <>
inline constexpr int scalar_rank<unsigned short> = 2;
template <>
inline constexpr int scalar_rank<int> = 2;
template <>
inline constexpr int scalar_rank<unsigned int> = 2;
template <>
inline constexpr int scalar_rank<long> = 2;
template <>
inline constexpr int scalar_rank<unsigned long> = 2;
template <>
inline constexpr int scalar_rank<long long> = 2;
template <>
inline constexpr int scalar_rank<unsigned long long> = 2;
template <>
inline constexpr int scalar_rank<half> = 3;
template <>
inline constexpr int scalar_rank<bfloat> = 3;
template <>
inline constexpr int scalar_rank<float> = 3;
// MSL has no double, but an unsuffixed literal reaches us as one.
template <>
inline constexpr int scalar_rank<double> = 3;

template <class T>
constexpr bool scalar_unsigned = (scalar_rank<T> == 1 || scalar_rank<T> == 2) && T(-1) > T(0);
template <>
inline constexpr bool scalar_unsigned<half> = false;
template <>
inline constexpr bool scalar_unsigned<bfloat> = false;
}  // namespace detail

template <class T>
constexpr bool is_floating_point_v = detail::scalar_rank<remove_cv_t<T>> == 3;
template <class T>
constexpr bool is_integral_v = detail::scalar_rank<remove_cv_t<T>> == 1 || detail::scalar_rank<remove_cv_t<T>> == 2;
template <class T>
constexpr bool is_arithmetic_v = detail::scalar_rank<remove_cv_t<T>> != 0;
template <class T>
constexpr bool is_scalar_v = is_arithmetic_v<T>;
template <class T>
constexpr bool is_unsigned_v = detail::scalar_unsigned<remove_cv_t<T>>;
template <class T>
constexpr bool is_signed_v = is_arithmetic_v<T> && !is_unsigned_v<T>;
template <class T>
struct is_floating_point : bool_constant<is_floating_point_v<T>> {};
template <class T>
struct is_integral : bool_constant<is_integral_v<T>> {};
template <class T>
struct is_arithmetic : bool_constant<is_arithmetic_v<T>> {};
template <class T>
struct is_unsigned : bool_constant<is_unsigned_v<T>> {};
template <class T>
struct is_signed : bool_constant<is_signed_v<T>> {};
template <class T>
struct is_scalar : bool_constant<is_scalar_v<T>> {};
template <class T>
constexpr bool is_pointer_v = false;
template <class T>
constexpr bool is_pointer_v<T*> = true;
template <class T>
struct is_pointer : bool_constant<is_pointer_v<T>> {};
template <class T>
constexpr bool is_const_v = false;
template <class T>
constexpr bool is_const_v<const T> = true;
template <class T>
struct is_const : bool_constant<is_const_v<T>> {};
template <class T>
constexpr bool is_enum_v = __is_enum(T);
template <class T>
struct is_enum : bool_constant<is_enum_v<T>> {};
template <class T>
constexpr bool is_class_v = __is_class(T);
template <class T>
struct is_class : bool_constant<is_class_v<T>> {};

template <class T>
struct make_unsigned {
  using type = T;
};
template <>
struct make_unsigned<char> {
  using type = unsigned char;
};
template <>
struct make_unsigned<signed char> {
  using type = unsigned char;
};
template <>
struct make_unsigned<short> {
  using type = unsigned short;
};
template <>
struct make_unsigned<int> {
  using type = unsigned int;
};
template <>
struct make_unsigned<long> {
  using type = unsigned long;
};
template <>
struct make_unsigned<long long> {
  using type = unsigned long long;
};
template <class T>
using make_unsigned_t = typename make_unsigned<T>::type;

// ---- 16-bit floating point ----

}  // namespace metal

#include "metal_half.h"

namespace metal {

namespace detail {
// binary32 to binary16 for constant expressions.
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
}  // namespace detail

// Both 16-bit types compute as hardware does: each operation on exact float
// values, rounded once to the type. For + - * / and sqrt, float is wide enough
// that rounding twice gives the correctly rounded result for half.
//
// `bits` is the only member, so the classes are trivially copyable, may stand
// in unions, and pass in registers.
#define MLXG_SMALL_FLOAT(NAME, TO_FLOAT, FROM_FLOAT, CONSTANT_TO, CONSTANT_FROM)                      \
  struct NAME {                                                                                       \
    uint16_t bits;                                                                                    \
    NAME() = default;                                                                                 \
    template <class T, class = enable_if_t<is_arithmetic_v<T>>>                                       \
    MLXG_INLINE constexpr NAME(T v)                                                                   \
        : bits(__builtin_is_constant_evaluated() ? CONSTANT_FROM(float(v)) : FROM_FLOAT(float(v))) {} \
    MLXG_INLINE constexpr operator float() const {                                                    \
      return __builtin_is_constant_evaluated() ? CONSTANT_TO(bits) : TO_FLOAT(bits);                  \
    }                                                                                                 \
    MLXG_INLINE NAME& operator+=(float v) { return *this = NAME(float(*this) + v); }                  \
    MLXG_INLINE NAME& operator-=(float v) { return *this = NAME(float(*this) - v); }                  \
    MLXG_INLINE NAME& operator*=(float v) { return *this = NAME(float(*this) * v); }                  \
    MLXG_INLINE NAME& operator/=(float v) { return *this = NAME(float(*this) / v); }                  \
    MLXG_INLINE NAME& operator++() { return *this = NAME(float(*this) + 1.0f); }                      \
    MLXG_INLINE NAME& operator--() { return *this = NAME(float(*this) - 1.0f); }                      \
    MLXG_INLINE NAME operator++(int) {                                                                \
      NAME old = *this;                                                                               \
      ++*this;                                                                                        \
      return old;                                                                                     \
    }                                                                                                 \
    MLXG_INLINE NAME operator--(int) {                                                                \
      NAME old = *this;                                                                               \
      --*this;                                                                                        \
      return old;                                                                                     \
    }                                                                                                 \
    MLXG_INLINE constexpr NAME operator+() const { return *this; }                                    \
    MLXG_INLINE constexpr NAME operator-() const {                                                    \
      NAME r = *this;                                                                                 \
      r.bits ^= 0x8000u;                                                                              \
      return r;                                                                                       \
    }                                                                                                 \
  };                                                                                                  \
  MLXG_SMALL_OPERATOR(NAME, +)                                                                        \
  MLXG_SMALL_OPERATOR(NAME, -)                                                                        \
  MLXG_SMALL_OPERATOR(NAME, *)                                                                        \
  MLXG_SMALL_OPERATOR(NAME, /)

// NAME ⊕ NAME is a NAME, and so is NAME ⊕ integer; with a float the result is
// a float, by the conversion operator and the built-in operators. Templates,
// so that nothing is converted to NAME to fit.
#define MLXG_SMALL_OPERATOR(NAME, OP)                                                                    \
  template <class A, class = enable_if_t<is_same_v<A, NAME>>>                                            \
  MLXG_INLINE constexpr NAME operator OP(A a, A b) {                                                     \
    return NAME(float(a) OP float(b));                                                                   \
  }                                                                                                      \
  template <class A, class T, class = enable_if_t<is_same_v<A, NAME> && is_integral_v<T>>, class = void> \
  MLXG_INLINE constexpr NAME operator OP(A a, T b) {                                                     \
    return NAME(float(a) OP float(NAME(b)));                                                             \
  }                                                                                                      \
  template <class A, class T, class = enable_if_t<is_same_v<A, NAME> && is_integral_v<T>>>               \
  MLXG_INLINE constexpr NAME operator OP(T a, A b) {                                                     \
    return NAME(float(NAME(a)) OP float(b));                                                             \
  }

MLXG_SMALL_FLOAT(
    half, detail::half_to_float, detail::float_to_half, detail::constant_half_to_float, detail::constant_half)
MLXG_SMALL_FLOAT(
    bfloat, detail::bfloat_to_float, detail::float_to_bfloat, detail::bfloat_to_float, detail::float_to_bfloat)
#undef MLXG_SMALL_FLOAT
#undef MLXG_SMALL_OPERATOR

static_assert(sizeof(half) == 2 && sizeof(bfloat) == 2);

// The suffix h is one that clang knows from the standard library; the rewriter turns others into it.
MLXG_INLINE constexpr half operator""h(long double v) {
  return half(float(v));
}

// ---- limits ----

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
