// Textures: the pixels of a slot, read, written and sampled as Metal does. Each access of a pixel is checked like an
// access of a buffer, in an address space of its own.
#ifndef CHECKER_TEXTURE_H
#define CHECKER_TEXTURE_H

#include "access.h"
#include "pixel.h"

namespace mlxg {
struct texture {
  uint32_t slot;
  uint32_t extent[4];  // width, height, depth, layers
  uint32_t component, channels;
};
}  // namespace mlxg

namespace checker {

static mlxg::texture textures[mlxg::max_buffers];

static uint32_t pixel_size(const mlxg::texture& t) {
  return size_of(t.component) * t.channels;
}

// Returns the address of a pixel, or 0 if it lies outside of the texture.
static uintptr_t address_of(const mlxg::texture& t, const mlxg::pixel& p) {
  const uint32_t* n = t.extent;
  if (p.x >= n[0] || p.y >= n[1] || p.z >= n[2] || p.layer >= n[3] || p.lod > 0) {
    return 0;
  }
  const uint64_t index = ((uint64_t(p.layer) * n[2] + p.z) * n[1] + p.y) * n[0] + p.x;
  return now.slots[t.slot].start + index * pixel_size(t);
}

// Reports an access outside of a texture. Metal defines its result.
CHECKER_RARE void outside_texture(const mlxg::texture& t, const mlxg::pixel& p, bool write, uint32_t pc) {
  finding f = here(texture_bounds, pc);
  f.slot = int32_t(t.slot);
  f.access = write ? is_write : 0;
  f.offset = int64_t(p.x | uint64_t(p.y) << 32);
  f.address = p.z | uint64_t(p.layer) << 32;
  f.detail = p.lod;
  report(f);
}

// Reports a read of a pixel that the running thread has written without a fence of the texture. A barrier for textures
// is a fence too.
static void check_own_write(const slot& s, uint64_t c, uint32_t pc) {
  const record w = s.writers[c];
  if (w.segment < s.first_segment) {
    return;
  }
  const segment_info& p = now.segments[w.segment];
  if (p.group != now.group || p.thread != now.thread || w.segment <= now.threads[now.thread].fenced ||
      p.phase[texture] != now.phase[texture] ||
      p.simd[texture] != now.simdgroups[now.thread / simd_width].simd[texture]) {
    return;
  }
  finding f = here(fence, pc);
  f.slot = int32_t(&s - now.slots);
  f.other_pc = w.pc & pc_mask;
  f.offset = int64_t(c << s.shift);
  f.access = other_is_write;
  f.other_group = p.group;
  f.other_thread = p.thread;
  report(f);
}

// The color of a pixel that does not exist. Without an alpha channel, alpha is 1.
static mlxg::texel no_color(const mlxg::texture& t) {
  return {{0, 0, 0, t.channels == 4 ? 0u : is_integer(t.component) ? 1u : as_bits(1)}};
}

// Reads an existing pixel.
static mlxg::texel load_pixel(const mlxg::texture& t, uintptr_t at, uint32_t pc) {
  const slot& s = now.slots[t.slot];
  if (s.writers) {
    check_own_write(s, (at - s.start) >> s.shift, pc);
  }
  access<false, false>(at, pixel_size(t), pc);
  mlxg::texel color = no_color(t);
  for (uint32_t i = 0; i < t.channels; ++i) {
    color.bits[i] = decode(t.component, reinterpret_cast<const char*>(at) + i * size_of(t.component));
  }
  return color;
}

// ---- samplers ----

// The pixels and weights of one axis of a sample.
struct taps {
  int64_t at[2];
  float weight[2];
  uint32_t count;
};

// Returns the index of the pixel that an address mode selects, or -1 for the border.
static int64_t wrap(int64_t i, int64_t n, uint8_t mode) {
  switch (mode) {
    case mlxg::repeat:
      return (i % n + n) % n;
    case mlxg::mirrored_repeat:
      i = (i % (2 * n) + 2 * n) % (2 * n);
      return i < n ? i : 2 * n - 1 - i;
    case mlxg::clamp_to_edge:
      return i < 0 ? 0 : i < n ? i : n - 1;
  }
  return i >= 0 && i < n ? i : -1;
}

static taps taps_of(float at, int32_t offset, uint32_t n, const mlxg::sampler_state& s, uint32_t axis, bool linear) {
  float u = (s.pixel ? at : at * float(n)) - (linear ? 0.5f : 0);
  u = u > -0x1p30f ? u < 0x1p30f ? u : 0x1p30f : u == u ? -0x1p30f : 0;
  const float low = __builtin_floorf(u);
  const int64_t i = int64_t(low) + offset;
  const uint8_t mode = s.address[axis];
  if (!linear || u == low) {
    return {{wrap(i, n, mode)}, {1}, 1};
  }
  return {{wrap(i, n, mode), wrap(i + 1, n, mode)}, {1 - (u - low), u - low}, 2};
}

static mlxg::texel border(const mlxg::texture& t, const mlxg::sampler_state& s, const int64_t at[3]) {
  bool zero = false;
  for (uint32_t a = 0; a < 3; ++a) {
    zero |= at[a] < 0 && s.address[a] == mlxg::clamp_to_zero;
  }
  if (zero) {
    return no_color(t);
  }
  const uint32_t one = is_integer(t.component) ? 1 : as_bits(1), color = s.border == 2 ? one : 0;
  return {{color, color, color, s.border > 0 ? one : 0}};
}

static mlxg::texel tap(
    const mlxg::texture& t, const mlxg::sampler_state& s, const int64_t at[3], uint32_t layer, uint32_t pc) {
  if (at[0] < 0 || at[1] < 0 || at[2] < 0) {
    return border(t, s, at);
  }
  return load_pixel(t, address_of(t, {uint32_t(at[0]), uint32_t(at[1]), uint32_t(at[2]), layer, 0}), pc);
}

static mlxg::texel sample(
    const mlxg::texture& t, const mlxg::sampler_state& s, const mlxg::sample_point& p, uint32_t pc) {
  const bool linear = s.linear[p.lod > 0] && !is_integer(t.component);
  const uint32_t layer = p.layer < t.extent[3] ? p.layer : t.extent[3] - 1;
  taps axes[3];
  for (uint32_t a = 0; a < 3; ++a) {
    axes[a] = a < p.axes ? taps_of(p.at[a], p.offset[a], t.extent[a], s, a, linear) : taps{{0}, {1}, 1};
  }
  const int64_t nearest[] = {axes[0].at[0], axes[1].at[0], axes[2].at[0]};
  if (axes[0].count * axes[1].count * axes[2].count == 1) {
    return tap(t, s, nearest, layer, pc);
  }
  float sum[4] = {};
  for (uint32_t i = 0; i < 8; ++i) {
    const uint32_t of[] = {i & 1, i >> 1 & 1, i >> 2};
    if (of[0] >= axes[0].count || of[1] >= axes[1].count || of[2] >= axes[2].count) {
      continue;
    }
    const int64_t at[] = {axes[0].at[of[0]], axes[1].at[of[1]], axes[2].at[of[2]]};
    const mlxg::texel color = tap(t, s, at, layer, pc);
    const float weight = axes[0].weight[of[0]] * axes[1].weight[of[1]] * axes[2].weight[of[2]];
    for (uint32_t c = 0; c < 4; ++c) {
      sum[c] += weight * as_float(color.bits[c]);
    }
  }
  return {{as_bits(sum[0]), as_bits(sum[1]), as_bits(sum[2]), as_bits(sum[3])}};
}

}  // namespace checker

extern "C" {

const mlxg::texture* mlxg_texture_at(uint32_t buffer) {
  return &checker::textures[buffer];
}
uint32_t mlxg_texture_extent(const mlxg::texture* t, uint32_t axis) {
  return t->extent[axis];
}

mlxg::texel mlxg_texture_read(const mlxg::texture* t, const mlxg::pixel* p) {
  const uintptr_t at = checker::address_of(*t, *p);
  if (at == 0) {
    checker::outside_texture(*t, *p, false, CHECKER_PC);
    return checker::no_color(*t);
  }
  return checker::load_pixel(*t, at, CHECKER_PC);
}

void mlxg_texture_write(const mlxg::texture* t, const mlxg::pixel* p, mlxg::texel color) {
  const uintptr_t at = checker::address_of(*t, *p);
  if (at == 0) {
    return checker::outside_texture(*t, *p, true, CHECKER_PC);
  }
  checker::access<true, false>(at, checker::pixel_size(*t), CHECKER_PC);
  const uint32_t size = checker::size_of(t->component);
  for (uint32_t i = 0; i < t->channels; ++i) {
    checker::encode(t->component, color.bits[i], reinterpret_cast<char*>(at) + i * size);
  }
}

mlxg::texel mlxg_texture_sample(const mlxg::texture* t, const mlxg::sampler_state* s, const mlxg::sample_point* p) {
  return checker::sample(*t, *s, *p, CHECKER_PC);
}

// Orders the thread's own writes before its later reads.
void mlxg_texture_fence(const mlxg::texture*) {
  using namespace checker;
  now.threads[now.thread].fenced = now.segment_count;
  now.segment = now.threads[now.thread].segment = none;
  new_epoch();
}
}

#endif
