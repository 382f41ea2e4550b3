// Conversions of consecutive halves, for shaders that use them if MLXG_VECTOR_CONVERSIONS is defined.
#ifndef METAL_CONVERT_H
#define METAL_CONVERT_H

#include "metal_small_float.h"

// Compilers apply the conversion instructions of x86-64 to single elements only. The checker sees no access of an
// assembly statement, so it compiles the shaders' own loops.
#if defined(__F16C__) && !defined(MLXG_CHECKED)
#define MLXG_VECTOR_CONVERSIONS

namespace mlxg {

template <int N>
using halves = uint16_t[N];
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

template <int N>
MLXG_INLINE void convert(const metal::half* from, float* to) {
  constexpr int W = N < floats_per_register ? 8 : floats_per_register;
  for (int k = 0; k + W <= N; k += W) {
    floats<W> v;
    const halves<W>& source = *reinterpret_cast<const halves<W>*>(from + k);
    __asm__("vcvtph2ps %1, %0" : "=v"(v) : "m"(source));
    __builtin_memcpy(to + k, &v, sizeof v);
  }
  for (int k = N / W * W; k < N; ++k) {
    to[k] = float(from[k]);
  }
}

template <int N>
MLXG_INLINE void convert(const float* from, metal::half* to) {
  constexpr int W = N < floats_per_register ? 8 : floats_per_register;
  for (int k = 0; k + W <= N; k += W) {
    floats<W> v;
    __builtin_memcpy(&v, from + k, sizeof v);
    halves<W>& target = *reinterpret_cast<halves<W>*>(to + k);
    __asm__("vcvtps2ph $0, %1, %0" : "=m"(target) : "v"(v));
  }
  for (int k = N / W * W; k < N; ++k) {
    to[k] = metal::half(from[k]);
  }
}

}  // namespace mlxg

#endif

#endif
