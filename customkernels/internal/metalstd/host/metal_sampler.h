// Metal's samplers.
#ifndef METAL_SAMPLER_H
#define METAL_SAMPLER_H

#include "metal_traits.h"
#include "mlxg_texture.h"

namespace metal {

enum class coord : uint8_t { normalized, pixel };
enum class filter : uint8_t { nearest, linear };
enum class min_filter : uint8_t { nearest, linear };
enum class mag_filter : uint8_t { nearest, linear };
enum class mip_filter : uint8_t { none, nearest, linear };
enum class border_color : uint8_t { transparent_black, opaque_black, opaque_white };
enum class compare_func : uint8_t { never, less, less_equal, greater, greater_equal, equal, not_equal, always };
#define MLXG_ADDRESS(NAME)                   \
  enum class NAME : uint8_t {                \
    clamp_to_edge = mlxg::clamp_to_edge,     \
    clamp_to_zero = mlxg::clamp_to_zero,     \
    clamp_to_border = mlxg::clamp_to_border, \
    repeat = mlxg::repeat,                   \
    mirrored_repeat = mlxg::mirrored_repeat, \
  };
MLXG_ADDRESS(address)
MLXG_ADDRESS(s_address)
MLXG_ADDRESS(t_address)
MLXG_ADDRESS(r_address)
#undef MLXG_ADDRESS
struct max_anisotropy {
  constexpr explicit max_anisotropy(int) {}
};
struct lod_clamp {
  constexpr lod_clamp(float, float) {}
};

struct sampler {
  mlxg::sampler_state mlxg_state{};
  template <class... Options>
  constexpr sampler(Options... options) {
    (set(options), ...);
  }

 private:
  constexpr void set(coord c) { mlxg_state.pixel = uint8_t(c); }
  constexpr void set(filter f) { mlxg_state.linear[0] = mlxg_state.linear[1] = uint8_t(f); }
  constexpr void set(mag_filter f) { mlxg_state.linear[0] = uint8_t(f); }
  constexpr void set(min_filter f) { mlxg_state.linear[1] = uint8_t(f); }
  constexpr void set(address a) { mlxg_state.address[0] = mlxg_state.address[1] = mlxg_state.address[2] = uint8_t(a); }
  constexpr void set(s_address a) { mlxg_state.address[0] = uint8_t(a); }
  constexpr void set(t_address a) { mlxg_state.address[1] = uint8_t(a); }
  constexpr void set(r_address a) { mlxg_state.address[2] = uint8_t(a); }
  constexpr void set(border_color c) { mlxg_state.border = uint8_t(c); }
  // These options have no effect on a texture with one mipmap level.
  constexpr void set(mip_filter) {}
  constexpr void set(max_anisotropy) {}
  constexpr void set(lod_clamp) {}
  constexpr void set(compare_func) {}
};

}  // namespace metal

#endif
