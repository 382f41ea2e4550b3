// Exponentials, logarithms and tanh of float that compilers can vectorize, because the code has no branches, tables or
// calls. libm's functions compute one float at a time.
//
// All errors are at most 2 ulp. NaN, infinities and zeros are as in C. Overflow gives infinity, and subnormal results
// are rounded once. The polynomials minimize the relative error of the function. Remez's algorithm in 50 digits gives
// the coefficients: each is rounded to float, from the lowest order on, and the others are fitted again. The remaining
// relative error is stated with each polynomial.
#ifndef METAL_EXP_H
#define METAL_EXP_H

#include "metal_scalar.h"

namespace metal {
namespace detail {

// Computes a·b + c, with one rounding if the target has the instruction. The functions below do not depend on it: terms
// that must be exact are exact in two roundings too.
MLXG_INLINE float multiply_add(float a, float b, float c) {
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
  return __builtin_fmaf(a, b, c);
#else
  return a * b + c;
#endif
}

// log 2 and log10 2 in two parts. The first part has 16 bits, so that its product with an exponent is exact.
constexpr float ln2_high = 0x1.62e4p-1f, ln2_low = 0x1.7f7d1cp-20f;
constexpr float log10_2_high = 0x1.344p-2f, log10_2_low = 0x1.3509f8p-18f;

// Adding this to a float below 2^22 leaves the nearest integer in the last bits.
constexpr float to_integer = 0x1.8p23f;
// The same for the integer plus 254, twice the bias of exponents.
constexpr float to_biased = to_integer + 254;

// Returns v·2^n for v in [1/2, 2], |n| < 250 and the sum n + to_biased. The first of two multiplications is exact. The
// last nine bits of the sum are n + 254, so a shift turns each half of them into a power of 2.
MLXG_INLINE float times_power_of_2(float v, float sum) {
  const unsigned bits = __builtin_bit_cast(unsigned, sum), half = bits >> 1;
  return v * __builtin_bit_cast(float, half << 23) * __builtin_bit_cast(float, (bits - half) << 23);
}

// Returns `exponential` if x is in [low, high] or NaN, 0 if x is below, and infinity if it is above. Functions do not
// bound x itself. g++ would compute their terms a second time from the bounds, and blend the terms in vectors.
MLXG_INLINE float exp_or_limit(float low, float x, float high, float exponential) {
  exponential = x < low ? 0.0f : exponential;
  return x > high ? INFINITY : exponential;
}

// Returns e^r for |r| ≤ log(2)/2, with an error of 2^-28.2.
constexpr float exp_terms[] = {0x1.6ad122p-10f, 0x1.123f2ep-7f, 0x1.55584ep-5f, 0x1.55548ap-3f, 0x1.fffffcp-2f};
MLXG_INLINE float exp_near_0(float r) {
  float q = multiply_add(exp_terms[0], r, exp_terms[1]);
  q = multiply_add(q, r, exp_terms[2]);
  q = multiply_add(q, r, exp_terms[3]);
  q = multiply_add(q, r, exp_terms[4]);
  // Add the rounding error of 1 + r.
  const float sum = 1.0f + r;
  return sum + multiply_add(q, r * r, r - (sum - 1.0f));
}

// Returns e^x = 2^n·e^r with r = x − n·log 2.
MLXG_INLINE float exp1(float x) {
  const float sum = multiply_add(x, M_LOG2E_F, to_biased);
  const float n = sum - to_biased;
  const float r = multiply_add(n, -ln2_low, multiply_add(n, -ln2_high, x));
  return exp_or_limit(-104.0f, x, 89.0f, times_power_of_2(exp_near_0(r), sum));
}

MLXG_INLINE float exp2_1(float x) {
  const float sum = x + to_biased;
  const float r = x - (sum - to_biased);
  return exp_or_limit(-151.0f, x, 129.0f, times_power_of_2(exp_near_0(r * M_LN2_F), sum));
}

// Returns v·2^n for x in [low, high], where the result is normal and n is the integer in `sum`. It returns 0 if x is
// below, and infinity or NaN if it is not. The shift removes the bits of to_integer.
MLXG_INLINE float normal_or_limit(float low, float x, float high, float v, float sum) {
  const int bits = __builtin_bit_cast(int, v) + (__builtin_bit_cast(int, sum) << 23);
  const float finite = __builtin_bit_cast(float, x < low ? 0 : bits);
  return x <= high ? finite : x + INFINITY;
}

// The fast functions return 0 in place of subnormal results, and the same bits as the others otherwise.
MLXG_INLINE float fast_exp1(float x) {
  const float sum = multiply_add(x, M_LOG2E_F, to_integer);
  const float n = sum - to_integer;
  const float r = multiply_add(n, -ln2_low, multiply_add(n, -ln2_high, x));
  return normal_or_limit(-0x1.5d589ep6f, x, 0x1.62e42ep6f, exp_near_0(r), sum);
}

MLXG_INLINE float fast_exp2_1(float x) {
  const float sum = x + to_integer;
  const float r = x - (sum - to_integer);
  return normal_or_limit(-126.0f, x, 0x1.fffffep6f, exp_near_0(r * M_LN2_F), sum);
}

MLXG_INLINE float exp10_1(float x) {
  const float sum = multiply_add(x, 0x1.a934f0p+1f, to_biased);  // 1/log10(2)
  const float n = sum - to_biased;
  const float r = multiply_add(n, -log10_2_low, multiply_add(n, -log10_2_high, x));
  return exp_or_limit(-46.0f, x, 39.0f, times_power_of_2(exp_near_0(r * M_LN10_F), sum));
}

// Returns the exponent and f of x = 2^exponent·(1 + f), with 1 + f in [√½, √2], for positive finite x.
struct Binary {
  float exponent, f;
};
MLXG_INLINE Binary binary(float x) {
  const bool subnormal = x < 0x1p-126f;
  x = subnormal ? x * 0x1p23f : x;
  const int root = 0x3f3504f3;  // √½
  const int above = __builtin_bit_cast(int, x) - root;
  const float exponent = float((above >> 23) - (subnormal ? 23 : 0));
  return Binary{exponent, __builtin_bit_cast(float, (above & 0x7fffff) + root) - 1.0f};
}

// Returns log(1 + f) − f for 1 + f in [√½, √2], with an error of 2^-28.0.
MLXG_INLINE float log_near_1(float f) {
  float q = 0x1.b41330p-5f;
  q = multiply_add(q, f, -0x1.bf3d62p-4f);
  q = multiply_add(q, f, 0x1.f00cd4p-4f);
  q = multiply_add(q, f, -0x1.010150p-3f);
  q = multiply_add(q, f, 0x1.23036ep-3f);
  q = multiply_add(q, f, -0x1.552f18p-3f);
  q = multiply_add(q, f, 0x1.99a540p-3f);
  q = multiply_add(q, f, -0x1.000070p-2f);
  q = multiply_add(q, f, 0x1.555548p-2f);
  const float square = f * f;
  return multiply_add(square * f, q, -0.5f * square);
}

// Returns `log` if x is positive and finite. Otherwise it returns the value that all logarithms share: -infinity at 0,
// infinity at infinity, and NaN for NaN and negative x.
MLXG_INLINE float log_or_limit(float x, float log) {
  log = x < INFINITY ? log : x;  // or NaN
  log = x < 0.0f ? NAN : log;
  return x == 0.0f ? -INFINITY : log;
}

MLXG_INLINE float log1(float x) {
  const Binary b = binary(x);
  const float low = b.f + multiply_add(b.exponent, ln2_low, log_near_1(b.f));
  return log_or_limit(x, multiply_add(b.exponent, ln2_high, low));
}

// log2(1 + f) = log(1 + f)·(1 + c).
MLXG_INLINE float log2_1(float x) {
  const Binary b = binary(x);
  const float rest = log_near_1(b.f);
  const float c = 0x1.c551dap-2f;
  return log_or_limit(x, b.exponent + (b.f + multiply_add(b.f + rest, c, rest)));
}

MLXG_INLINE float log10_1(float x) {
  const Binary b = binary(x);
  const float low = multiply_add(b.exponent, log10_2_low, (b.f + log_near_1(b.f)) * M_LOG10E_F);
  return log_or_limit(x, multiply_add(b.exponent, log10_2_high, low));
}

// Returns tanh x: an odd polynomial below 0.625, with an error of 2^-27.7, and 1 − 2/(e^2x + 1) above.
MLXG_INLINE float tanh1(float x) {
  const float size = __builtin_fabsf(x);
  const float square = x * x;
  float q = -0x1.750ce2p-8f;
  q = multiply_add(q, square, 0x1.51f8cep-6f);
  q = multiply_add(q, square, -0x1.b835a4p-5f);
  q = multiply_add(q, square, 0x1.1106f6p-3f);
  q = multiply_add(q, square, -0x1.555532p-2f);
  const float near = multiply_add(square * size, q, size);
  const float far = 1.0f - 2.0f / (exp1(2.0f * size) + 1.0f);
  return __builtin_copysignf(size < 0.625f ? near : far, x);
}

}  // namespace detail
}  // namespace metal

#endif
