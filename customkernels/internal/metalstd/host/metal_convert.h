// Conversions of consecutive elements, for shaders that use them if MLXG_VECTOR_CONVERSIONS is defined.
#ifndef METAL_CONVERT_H
#define METAL_CONVERT_H

#include "metal_small_float.h"

// Compilers apply the conversion instructions of x86-64 to single elements only. The checker compiles the shaders' own
// loops, whose accesses it reports with their lines.
#if defined(__F16C__) && !defined(MLXG_CHECKED)
#define MLXG_VECTOR_CONVERSIONS

namespace mlxg {

template <int N>
using halves [[gnu::vector_size(N * sizeof(uint16_t))]] = uint16_t;
template <int N>
using floats [[gnu::vector_size(N * sizeof(float))]] = float;

#ifdef __AVX512F__
constexpr int floats_per_register = 16;
#else
constexpr int floats_per_register = 8;
#endif

// convert converts N values, exactly from half and rounded to nearest even to half.
template <int N, class FROM, class TO>
MLXG_INLINE void convert(const FROM* from, TO* to) {
  for (int k = 0; k < N; ++k) {
    to[k] = TO(from[k]);
  }
}

template <int N, class T>
MLXG_INLINE void convert(const T* from, T* to) {
  __builtin_memcpy(to, from, N * sizeof(T));
}

// Converts the elements of a register.
template <int W>
MLXG_INLINE void convert_register(halves<W> from, floats<W>& to) {
  __asm__("vcvtph2ps %1, %0" : "=v"(to) : "v"(from));
}
template <int W>
MLXG_INLINE void convert_register(floats<W> from, halves<W>& to) {
  __asm__("vcvtps2ph $0, %1, %0" : "=v"(to) : "v"(from));
}

// Converts N values with registers of W elements, which are FROM_REGISTER and TO_REGISTER, and the rest one by one.
template <int N, int W, class FROM_REGISTER, class TO_REGISTER, class FROM, class TO>
MLXG_INLINE void convert_registers(const FROM* from, TO* to) {
  for (int k = 0; k + W <= N; k += W) {
    FROM_REGISTER a;
    TO_REGISTER b;
    __builtin_memcpy(&a, from + k, sizeof a);
    convert_register<W>(a, b);
    __builtin_memcpy(to + k, &b, sizeof b);
  }
  for (int k = N / W * W; k < N; ++k) {
    to[k] = TO(from[k]);
  }
}

template <int N>
MLXG_INLINE void convert(const metal::half* from, float* to) {
  constexpr int W = N < floats_per_register ? 8 : floats_per_register;
  convert_registers<N, W, halves<W>, floats<W>>(from, to);
}

template <int N>
MLXG_INLINE void convert(const float* from, metal::half* to) {
  constexpr int W = N < floats_per_register ? 8 : floats_per_register;
  convert_registers<N, W, floats<W>, halves<W>>(from, to);
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
