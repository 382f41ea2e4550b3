// Conversions of consecutive elements, for shaders that use them if MLXG_VECTOR_CONVERSIONS is defined.
#ifndef METAL_CONVERT_H
#define METAL_CONVERT_H

#include "metal_small_float.h"

// Compilers apply the conversion instructions of x86-64 to single elements only. They copy arrays in pieces of other
// sizes than the registers that load the copy, so these loads wait for the stores. The checker compiles the shaders'
// own loops, whose accesses it reports with their lines.
#if defined(__F16C__) && !defined(MLXG_CHECKED)
#define MLXG_VECTOR_CONVERSIONS

namespace mlxg {

#ifdef __AVX512F__
constexpr int floats_per_register = 16;
#else
constexpr int floats_per_register = 8;
#endif

// Begins to load BYTES bytes at p, or the ownership of their cache lines. It never faults.
template <int BYTES, bool STORE>
MLXG_INLINE void prefetch(const void* p) {
  constexpr int line = 64;
  for (int at = 0; at < BYTES; at += line) {
    __builtin_prefetch(static_cast<const char*>(p) + at, STORE);
  }
}

template <int W>
using floats [[gnu::vector_size(W * sizeof(float))]] = float;
template <int W>
using words [[gnu::vector_size(W * sizeof(uint32_t))]] = uint32_t;
template <int W>
using halves [[gnu::vector_size(W * sizeof(uint16_t))]] = uint16_t;

// register_conversion converts W elements in a register, if they are floats or become floats. half and bfloat are bits.
template <class FROM, class TO, int W>
struct register_conversion {
  static constexpr bool exists = false;
};
template <int W>
struct register_conversion<float, float, W> {
  static constexpr bool exists = true;
  using from = floats<W>;
  MLXG_INLINE static from convert(from v) { return v; }
};
template <int W>
struct register_conversion<metal::half, float, W> {
  static constexpr bool exists = true;
  using from = halves<W>;
  MLXG_INLINE static floats<W> convert(from v) {
    floats<W> to;
    __asm__("vcvtph2ps %1, %0" : "=v"(to) : "v"(v));
    return to;
  }
};
template <int W>
struct register_conversion<float, metal::half, W> {
  static constexpr bool exists = true;
  using from = floats<W>;
  MLXG_INLINE static halves<W> convert(from v) {
    halves<W> to;
    __asm__("vcvtps2ph $0, %1, %0" : "=v"(to) : "v"(v));
    return to;
  }
};
template <int W>
struct register_conversion<metal::bfloat, float, W> {
  static constexpr bool exists = true;
  using from = halves<W>;
  MLXG_INLINE static floats<W> convert(from v) { return (floats<W>)(__builtin_convertvector(v, words<W>) << 16); }
};
template <int W>
struct register_conversion<float, metal::bfloat, W> {
  static constexpr bool exists = true;
  using from = floats<W>;
  MLXG_INLINE static halves<W> convert(from v) {
    const words<W> bits = (words<W>)v;
    const words<W> rounded = bits + 0x7fffu + (bits >> 16 & 1u);
    return __builtin_convertvector((v == v ? rounded : bits | 0x400000u) >> 16, halves<W>);
  }
};

// convert converts N values, exactly to float and rounded to nearest even from float.
template <int N, class FROM, class TO>
MLXG_INLINE void convert(const FROM* from, TO* to) {
  constexpr int W = N < floats_per_register ? 8 : floats_per_register;
  using conversion = register_conversion<FROM, TO, W>;
  int k = 0;
  if constexpr (conversion::exists) {
    for (; k + W <= N; k += W) {
      typename conversion::from v;
      __builtin_memcpy(&v, from + k, sizeof v);
      const auto converted = conversion::convert(v);
      __builtin_memcpy(to + k, &converted, sizeof converted);
    }
  }
  for (; k < N; ++k) {
    to[k] = TO(from[k]);
  }
}

// Returns its argument. The compiler does not know that, so loops over it do not become masked loads or calls of memset
// and memcpy. In an outer loop with one of these, g++ keeps no sums in registers.
MLXG_INLINE float opaque(float f) {
  __asm__("" : "+x"(f));
  return f;
}
template <class T>
MLXG_INLINE T opaque(T value) {
  return value;
}

// Converts the first `count` values.
template <class FROM, class TO>
MLXG_INLINE void convert_first(const FROM* from, size_t count, TO* to) {
  for (size_t k = 0; k < count; ++k) {
    to[k] = opaque(TO(opaque(from[k])));
  }
}

// Converts the first `count` of N values, and sets the others to 0.
template <int N, class FROM, class TO>
MLXG_INLINE void convert_first_of(const FROM* from, size_t count, TO* to) {
  const TO zero = opaque(TO(0));
  for (int k = 0; k < N; ++k) {
    to[k] = zero;
  }
  convert_first(from, count, to);
}

}  // namespace mlxg

#endif

#endif
