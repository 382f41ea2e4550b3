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

// Begins to load BYTES bytes at p into the cache of this level, or the ownership of their cache lines. It never faults.
template <int BYTES, bool STORE, int LEVEL = 1>
MLXG_INLINE void prefetch(const void* p) {
  constexpr int line = 64;
  for (int at = 0; at < BYTES; at += line) {
    __builtin_prefetch(static_cast<const char*>(p) + at, STORE, 4 - LEVEL);
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
  // g++ widens 16 numbers in two halves.
  MLXG_INLINE static floats<W> convert(from v) {
    words<W> bits;
    __asm__("vpmovzxwd %1, %0" : "=v"(bits) : "v"(v));
    return (floats<W>)(bits << 16);
  }
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
  if constexpr (metal::is_same_v<FROM, TO>) {
    __builtin_memcpy(to + k, from + k, (N - k) * sizeof(TO));  // g++ does not vectorize loops that copy halves
    return;
  }
  for (; k < N; ++k) {
    to[k] = TO(from[k]);
  }
}

#if defined(__AVX512BW__) && defined(__AVX512VL__)
#define MLXG_LINE_WRITER
// line_writer stores consecutive vectors of N floats as T, in lines of N elements that bypass the caches. So the
// processor does not read the memory before it writes it. `to` may be anywhere: an instruction puts the elements of a
// line together from two vectors.
template <class T, int N>
struct line_writer {
  static constexpr size_t bytes = N * sizeof(T);
  static_assert(N == 16);
  using integer = metal::conditional_t<sizeof(T) == 4, uint32_t, uint16_t>;
  using vector [[gnu::vector_size(bytes)]] = integer;

  vector previous;
  vector order;  // where the elements of a line are in the previous and the next vector
  char* line;
  int before;  // elements of the line before the next vector
  bool is_first;

  MLXG_INLINE void begin(T* to) {
    const size_t address = reinterpret_cast<size_t>(to);
    before = int(address % bytes / sizeof(T));
    line = reinterpret_cast<char*>(address - address % bytes);
    is_first = true;
    integer places[N];
    for (int k = 0; k < N; ++k) {
      places[k] = integer(N - before + k);
    }
    __builtin_memcpy(&order, places, sizeof order);
    previous = order;
  }

  MLXG_INLINE void store(const float* values) {
    T converted[N];
    convert<N>(values, converted);
    vector next;
    __builtin_memcpy(&next, converted, sizeof next);
    const vector whole = join(next);
    if (__builtin_expect(is_first, false)) {
      store_elements<N>(converted, N - before, line + before * sizeof(T));
      is_first = false;
    } else {
      store_line(whole);
    }
    previous = next;
    line += bytes;
  }

  // Stores the elements after the last whole line.
  MLXG_INLINE void end() {
    T last[N];
    const vector v = join(previous);
    __builtin_memcpy(last, &v, sizeof v);
    store_elements<N>(last, before, line);
    __builtin_ia32_sfence();
  }

 private:
  MLXG_INLINE vector join(vector next) const {
    vector v = previous;
    if constexpr (sizeof(T) == 4) {
      __asm__("vpermt2d %2, %1, %0" : "+v"(v) : "v"(order), "v"(next));
    } else {
      __asm__("vpermt2w %2, %1, %0" : "+v"(v) : "v"(order), "v"(next));
    }
    return v;
  }

  // This is no assembly, because g++ keeps no sums in registers beside assembly that writes memory.
  MLXG_INLINE void store_line(vector v) const {
#ifdef __clang__
    __builtin_nontemporal_store(v, reinterpret_cast<vector*>(line));
#else
    using words64 [[gnu::vector_size(64)]] = long long;
    using words32 [[gnu::vector_size(32)]] = long long;
    if constexpr (sizeof(T) == 4) {
      __builtin_ia32_movntdq512(reinterpret_cast<words64*>(line), (words64)v);
    } else {
      __builtin_ia32_movntdq256(reinterpret_cast<words32*>(line), (words32)v);
    }
#endif
  }

  // Stores the first `count` elements, at most SIZE, in pieces whose sizes are powers of two.
  template <int SIZE>
  MLXG_INLINE static void store_elements(const T* from, int count, char* to) {
    const int piece = count & SIZE;
    if (piece) {
      __builtin_memcpy(to, from, SIZE * sizeof(T));
    }
    if constexpr (SIZE > 1) {
      store_elements<SIZE / 2>(from + piece, count - piece, to + piece * sizeof(T));
    }
  }
};
#endif

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
