// Metal's textures, for the checker. The worker holds the pixels.
#ifndef METAL_TEXTURE_H
#define METAL_TEXTURE_H

#include "metal_sampler.h"
#include "metal_vec.h"

namespace metal {

enum class access : uint8_t { sample, read, write, read_write };

// The mipmap level of a sample.
struct level {
  float mlxg_lod;
  explicit level(float lod) : mlxg_lod(lod) {}
};
struct bias {
  float mlxg_lod = 0;
  explicit bias(float) {}
};
struct gradient2d {
  float mlxg_lod = 0;
  template <class A, class B>
  gradient2d(A, B) {}
};

namespace detail {

template <class T>
MLXG_INLINE vec<T, 4> color_of(mlxg::texel t) {
  vec<T, 4> color(T(0));
  for (int i = 0; i < 4; ++i) {
    if constexpr (is_floating_point_v<T>) {
      color.data[i] = T(__builtin_bit_cast(float, t.bits[i]));
    } else {
      color.data[i] = T(t.bits[i]);
    }
  }
  return color;
}
template <class T>
MLXG_INLINE mlxg::texel texel_of(const vec<T, 4>& color) {
  mlxg::texel t;
  for (int i = 0; i < 4; ++i) {
    if constexpr (is_floating_point_v<T>) {
      t.bits[i] = __builtin_bit_cast(uint32_t, float(color.data[i]));
    } else {
      t.bits[i] = uint32_t(int64_t(color.data[i]));
    }
  }
  return t;
}

// Returns lane i of a coordinate, and 0 for an axis that the texture does not have.
template <class To, class C>
MLXG_INLINE To axis(const C& c, int i) {
  if constexpr (lanes<C> == 1) {
    return i == 0 ? To(c) : To(0);
  } else {
    const vec<To, lanes<C>> all(c);
    return i < lanes<C> ? all.data[i] : To(0);
  }
}
template <class C>
MLXG_INLINE mlxg::pixel pixel_of(const C& c, uint layer, uint lod) {
  return {axis<uint>(c, 0), axis<uint>(c, 1), axis<uint>(c, 2), layer, lod};
}
template <class C, class O>
MLXG_INLINE mlxg::sample_point point_of(const C& c, uint layer, float lod, const O& offset) {
  return {
      {axis<float>(c, 0), axis<float>(c, 1), axis<float>(c, 2)},
      {axis<int>(offset, 0), axis<int>(offset, 1), axis<int>(offset, 2)},
      layer,
      lod,
      uint32_t(lanes<C>)};
}

// What all textures have in common. T is the type of a component.
template <class T, access A>
struct texture_of {
  const mlxg::texture* mlxg_texture;

  static constexpr bool can_read = A != access::write;
  static constexpr bool can_write = A == access::write || A == access::read_write;
  static constexpr bool can_sample = A == access::sample;

  MLXG_INLINE uint get_width(uint = 0) const {
    return mlxg_texture_extent(mlxg_texture, 0);
  }
  MLXG_INLINE uint get_num_mip_levels() const {
    return 1;
  }
  MLXG_INLINE void fence() const
    requires(A == access::read_write)
  {
    mlxg_texture_fence(mlxg_texture);
  }

 protected:
  template <class C>
  MLXG_INLINE vec<T, 4> read_at(const C& c, uint layer, uint lod) const {
    const mlxg::pixel p = pixel_of(c, layer, lod);
    return color_of<T>(mlxg_texture_read(mlxg_texture, &p));
  }
  template <class C>
  MLXG_INLINE void write_at(const vec<T, 4>& color, const C& c, uint layer, uint lod) const {
    const mlxg::pixel p = pixel_of(c, layer, lod);
    mlxg_texture_write(mlxg_texture, &p, texel_of(color));
  }
  template <class C, class O>
  MLXG_INLINE vec<T, 4> sample_at(const sampler& s, const C& c, uint layer, float lod, const O& offset) const {
    const mlxg::sample_point p = point_of(c, layer, lod, offset);
    return color_of<T>(mlxg_texture_sample(mlxg_texture, &s.mlxg_state, &p));
  }
};

template <int n>
struct coordinate {
  using whole = vec<uint, n>;
  using real = vec<float, n>;
  using offset = vec<int, n>;
};
template <>
struct coordinate<1> {
  using whole = uint;
  using real = float;
  using offset = int;
};

// A texture whose pixels have n coordinates. Any type with n lanes is a coordinate.
template <class T, access A, int n>
struct plain_texture : texture_of<T, A> {
  using at = coordinate<n>;
  template <class C = typename at::whole>
    requires(lanes<C> == n && plain_texture::can_read)
  MLXG_INLINE vec<T, 4> read(C c, uint lod = 0) const {
    return this->read_at(c, 0, lod);
  }
  template <class C = typename at::whole>
    requires(lanes<C> == n && plain_texture::can_write)
  MLXG_INLINE void write(vec<T, 4> color, C c, uint lod = 0) const {
    this->write_at(color, c, 0, lod);
  }
  template <class C = typename at::real>
    requires(lanes<C> == n && plain_texture::can_sample)
  MLXG_INLINE vec<T, 4> sample(sampler s, C c, typename at::offset offset = 0) const {
    return this->sample_at(s, c, 0, 0, offset);
  }
  template <class C = typename at::real, class Lod>
    requires(lanes<C> == n && plain_texture::can_sample && lanes<Lod> == 0)
  MLXG_INLINE vec<T, 4> sample(sampler s, C c, Lod lod, typename at::offset offset = 0) const {
    return this->sample_at(s, c, 0, lod.mlxg_lod, offset);
  }
};

// An array of such textures.
template <class T, access A, int n>
struct texture_array : texture_of<T, A> {
  using at = coordinate<n>;
  MLXG_INLINE uint get_array_size() const {
    return mlxg_texture_extent(this->mlxg_texture, 3);
  }
  template <class C = typename at::whole>
    requires(lanes<C> == n && texture_array::can_read)
  MLXG_INLINE vec<T, 4> read(C c, uint layer, uint lod = 0) const {
    return this->read_at(c, layer, lod);
  }
  template <class C = typename at::whole>
    requires(lanes<C> == n && texture_array::can_write)
  MLXG_INLINE void write(vec<T, 4> color, C c, uint layer, uint lod = 0) const {
    this->write_at(color, c, layer, lod);
  }
  template <class C = typename at::real>
    requires(lanes<C> == n && texture_array::can_sample)
  MLXG_INLINE vec<T, 4> sample(sampler s, C c, uint layer, typename at::offset offset = 0) const {
    return this->sample_at(s, c, layer, 0, offset);
  }
  template <class C = typename at::real, class Lod>
    requires(lanes<C> == n && texture_array::can_sample && lanes<Lod> == 0)
  MLXG_INLINE vec<T, 4> sample(sampler s, C c, uint layer, Lod lod, typename at::offset offset = 0) const {
    return this->sample_at(s, c, layer, lod.mlxg_lod, offset);
  }
};

}  // namespace detail

#define MLXG_TEXTURE(NAME, BASE, AXES) \
  template <class T, access A = access::sample> \
  struct NAME : detail::BASE<T, A, AXES>
#define MLXG_EXTENT(NAME, AXIS)                         \
  MLXG_INLINE uint NAME(uint = 0) const {               \
    return mlxg_texture_extent(this->mlxg_texture, AXIS); \
  }
MLXG_TEXTURE(texture1d, plain_texture, 1){};
MLXG_TEXTURE(texture1d_array, texture_array, 1){};
MLXG_TEXTURE(texture2d, plain_texture, 2) {
  MLXG_EXTENT(get_height, 1)
};
MLXG_TEXTURE(texture2d_array, texture_array, 2) {
  MLXG_EXTENT(get_height, 1)
};
MLXG_TEXTURE(texture3d, plain_texture, 3) {
  MLXG_EXTENT(get_height, 1)
  MLXG_EXTENT(get_depth, 2)
};
#undef MLXG_TEXTURE
#undef MLXG_EXTENT

// The checker gives every texture of a launch.
template <class T, access A, int n>
MLXG_INLINE bool is_null_texture(const detail::plain_texture<T, A, n>&) {
  return false;
}
template <class T, access A, int n>
MLXG_INLINE bool is_null_texture(const detail::texture_array<T, A, n>&) {
  return false;
}

}  // namespace metal

namespace mlxg {
// The texture at an index, as the type of the kernel's parameter.
struct texture_argument {
  uint32_t buffer;
  template <class T>
  MLXG_INLINE operator T() const {
    T t{};
    t.mlxg_texture = mlxg_texture_at(buffer);
    return t;
  }
};
}  // namespace mlxg

#endif
