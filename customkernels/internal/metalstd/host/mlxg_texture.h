// The interface of textures between a shader that is compiled for the checker and the worker.
#ifndef MLXG_TEXTURE_H
#define MLXG_TEXTURE_H

#include <stdint.h>

namespace mlxg {

struct texture;  // a texture of the launch, in the worker

// The state of a sampler. Its size and alignment are those of a texture, so that both fit an argument buffer.
struct alignas(8) sampler_state {
  uint8_t pixel;       // coordinates count pixels, instead of reaching from 0 to 1
  uint8_t linear[2];   // filter of magnification, then of minification
  uint8_t address[3];  // address mode of each axis, an address_mode
  uint8_t border;      // border color: transparent black, opaque black, opaque white
};
enum address_mode : uint8_t { clamp_to_edge, clamp_to_zero, clamp_to_border, repeat, mirrored_repeat };

// The four components of a pixel: floats, or integers of 32 bits.
struct texel {
  uint32_t bits[4];
};

// The place of a pixel. A texture array has a layer, a cube one for each face.
struct pixel {
  uint32_t x, y, z, layer, lod;
};
struct sample_point {
  float at[3];  // the first `axes` count
  int32_t offset[3];
  uint32_t layer;
  float lod;
  uint32_t axes;
};

}  // namespace mlxg

extern "C" {
mlxg::texel mlxg_texture_read(const mlxg::texture*, const mlxg::pixel*);
void mlxg_texture_write(const mlxg::texture*, const mlxg::pixel*, mlxg::texel);
mlxg::texel mlxg_texture_sample(const mlxg::texture*, const mlxg::sampler_state*, const mlxg::sample_point*);
void mlxg_texture_fence(const mlxg::texture*);
// Returns the size of an axis, or the number of layers for axis 3.
uint32_t mlxg_texture_extent(const mlxg::texture*, uint32_t axis);
// The texture at the index of its buffer.
const mlxg::texture* mlxg_texture_at(uint32_t buffer);
}

#endif
