// The components of pixels in memory.
#ifndef CHECKER_PIXEL_H
#define CHECKER_PIXEL_H

#include "metal_half.h"
#include "mlxg_texture.h"
#include "state.h"

namespace checker {

// The storage of a component. texture.go declares the same numbers.
enum component : uint32_t {
  no_component,
  unorm8,
  snorm8,
  unorm16,
  snorm16,
  uint8,
  sint8,
  uint16,
  sint16,
  uint32,
  sint32,
  float16,
  float32,
};

static uint32_t size_of(uint32_t c) {
  constexpr uint8_t sizes[] = {0, 1, 1, 2, 2, 1, 1, 2, 2, 4, 4, 2, 4};
  return sizes[c];
}

static bool is_integer(uint32_t c) {
  return c >= uint8 && c <= sint32;
}

static float as_float(uint32_t bits) {
  return __builtin_bit_cast(float, bits);
}
static uint32_t as_bits(float f) {
  return __builtin_bit_cast(uint32_t, f);
}

// Returns the value of a component, as a float or an integer of 32 bits.
static uint32_t decode(uint32_t c, const void* at) {
  uint32_t raw = 0;
  __real_memcpy(&raw, at, size_of(c));
  const auto signed_norm = [](float v) { return as_bits(v < -1 ? -1 : v); };
  switch (c) {
    case unorm8:
      return as_bits(float(raw) / 255);
    case unorm16:
      return as_bits(float(raw) / 65535);
    case snorm8:
      return signed_norm(float(int8_t(raw)) / 127);
    case snorm16:
      return signed_norm(float(int16_t(raw)) / 32767);
    case sint8:
      return uint32_t(int8_t(raw));
    case sint16:
      return uint32_t(int16_t(raw));
    case float16:
      return as_bits(metal::detail::half_to_float(uint16_t(raw)));
    default:
      return raw;
  }
}

// Returns a float as an integer, rounded to nearest even. It clamps to [low, 1] and multiplies by scale.
static uint32_t normalize(float v, float low, float scale) {
  v = v >= low ? v : v < low ? low : 0;  // a NaN is 0
  return uint32_t(int32_t(__builtin_rintf((v > 1 ? 1 : v) * scale)));
}

// Returns an integer clamped to [low, high].
static uint32_t saturate(int64_t v, int64_t low, int64_t high) {
  return uint32_t(v < low ? low : v > high ? high : v);
}

// Stores the value of a component, converted as Metal does: normalized components round to nearest, integers saturate.
static void encode(uint32_t c, uint32_t value, void* at) {
  const float f = as_float(value);
  const int32_t i = int32_t(value);
  switch (c) {
    case unorm8:
      value = normalize(f, 0, 255);
      break;
    case unorm16:
      value = normalize(f, 0, 65535);
      break;
    case snorm8:
      value = normalize(f, -1, 127);
      break;
    case snorm16:
      value = normalize(f, -1, 32767);
      break;
    case uint8:
      value = saturate(value, 0, 0xff);
      break;
    case uint16:
      value = saturate(value, 0, 0xffff);
      break;
    case sint8:
      value = saturate(i, -0x80, 0x7f);
      break;
    case sint16:
      value = saturate(i, -0x8000, 0x7fff);
      break;
    case float16:
      value = metal::detail::float_to_half(f);
      break;
  }
  __real_memcpy(at, &value, size_of(c));
}

}  // namespace checker

#endif
