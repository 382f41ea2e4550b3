// Metal's scalar type names and type traits.
#ifndef METAL_TRAITS_H
#define METAL_TRAITS_H

#include "metal_compiler.h"

typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned int uint;
typedef unsigned long ulong;

#define INFINITY (__builtin_inff())
#define NAN (__builtin_nanf(""))
#define HUGE_VALF (__builtin_inff())
// Metal 3.1, the first version with bfloat. Packages translate and addrspace define the same version.
#define __METAL__ 1
#define __METAL_VERSION__ 310
#define __HAVE_BFLOAT__ 1
#define MAXFLOAT 3.40282346638528859811704183484516925e+38f

#ifdef MLXG_CHECKED
// Declared here and not included from mlxg_calls.h: the text for CUDA expands every include of this file.
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
struct nothing;  // an incomplete type, for declarations that no call matches (translate/host_entry.go)
}

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

// Address spaces do not exist in the translated source.
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
// Names of Apple's headers that MLX uses.
template <class... B>
using _conjunction = conjunction<B...>;
template <class... B>
using _disjunction = disjunction<B...>;

// A value that is equal in all threads, a hint for Metal's compiler.
template <class T>
using uniform = T;
template <class T>
MLXG_INLINE constexpr T make_uniform(T v) {
  return v;
}

namespace detail {
// Returns the index i. Under the checker it reports an index of n or more, because the compilers' own check accepts a
// reference to the element after the last.
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
constexpr int scalar_rank = 0;  // 1 bool, 2 integer, 3 floating point
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
// MSL has no double, but literals without suffix have this type in C++.
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

}  // namespace metal

#endif
