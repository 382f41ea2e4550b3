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
template <class T>
MLXG_INLINE T axis(T c, int i) {
  return i == 0 ? c : 0;
}
template <class T, int n>
MLXG_INLINE T axis(const vec<T, n>& c, int i) {
  return i < n ? c.data[i] : 0;
}

// The types of coordinates with n lanes.
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
// Metal converts a scalar to a vector.
template <class C, int n>
constexpr bool is_coordinate = lanes<C> == n || lanes<C> == 1;

// What all textures have in common. T is the type of a component. A pixel has n coordinates.
template <class T, access A, int n>
struct texture_of {
  using at = coordinate<n>;
  const mlxg::texture* mlxg_texture;

  static constexpr bool can_read = A != access::write;
  static constexpr bool can_write = A == access::write || A == access::read_write;
  static constexpr bool can_sample = A == access::sample;

  MLXG_INLINE uint get_width(uint = 0) const { return mlxg_texture_extent(mlxg_texture, 0); }
  MLXG_INLINE uint get_num_mip_levels() const { return 1; }
  MLXG_INLINE void fence() const
    requires(A == access::read_write)
  {
    mlxg_texture_fence(mlxg_texture);
  }

 protected:
  MLXG_INLINE vec<T, 4> read_at(typename at::whole c, uint layer, uint lod) const {
    const mlxg::pixel p{axis(c, 0), axis(c, 1), axis(c, 2), layer, lod};
    return color_of<T>(mlxg_texture_read(mlxg_texture, &p));
  }
  MLXG_INLINE void write_at(const vec<T, 4>& color, typename at::whole c, uint layer, uint lod) const {
    const mlxg::pixel p{axis(c, 0), axis(c, 1), axis(c, 2), layer, lod};
    mlxg_texture_write(mlxg_texture, &p, texel_of(color));
  }
  MLXG_INLINE vec<T, 4> sample_at(
      const sampler& s, typename at::real c, uint layer, float lod, typename at::offset o) const {
    const mlxg::sample_point p{
        {axis(c, 0), axis(c, 1), axis(c, 2)}, {axis(o, 0), axis(o, 1), axis(o, 2)}, layer, lod, n};
    return color_of<T>(mlxg_texture_sample(mlxg_texture, &s.mlxg_state, &p));
  }
};

// A texture without layers.
template <class T, access A, int n>
struct plain_texture : texture_of<T, A, n> {
  using typename texture_of<T, A, n>::at;
  template <class C = typename at::whole>
    requires(is_coordinate<C, n> && plain_texture::can_read)
  MLXG_INLINE vec<T, 4> read(C c, uint lod = 0) const {
    return this->read_at(typename at::whole(c), 0, lod);
  }
  template <class C = typename at::whole>
    requires(is_coordinate<C, n> && plain_texture::can_write)
  MLXG_INLINE void write(vec<T, 4> color, C c, uint lod = 0) const {
    this->write_at(color, typename at::whole(c), 0, lod);
  }
  template <class C = typename at::real>
    requires(is_coordinate<C, n> && plain_texture::can_sample)
  MLXG_INLINE vec<T, 4> sample(sampler s, C c, typename at::offset offset = 0) const {
    return this->sample_at(s, typename at::real(c), 0, 0, offset);
  }
  template <class C = typename at::real, class Lod>
    requires(is_coordinate<C, n> && plain_texture::can_sample && lanes<Lod> == 0)
  MLXG_INLINE vec<T, 4> sample(sampler s, C c, Lod lod, typename at::offset offset = 0) const {
    return this->sample_at(s, typename at::real(c), 0, lod.mlxg_lod, offset);
  }
};

// An array of textures.
template <class T, access A, int n>
struct texture_array : texture_of<T, A, n> {
  using typename texture_of<T, A, n>::at;
  MLXG_INLINE uint get_array_size() const { return mlxg_texture_extent(this->mlxg_texture, 3); }
  template <class C = typename at::whole>
    requires(is_coordinate<C, n> && texture_array::can_read)
  MLXG_INLINE vec<T, 4> read(C c, uint layer, uint lod = 0) const {
    return this->read_at(typename at::whole(c), layer, lod);
  }
  template <class C = typename at::whole>
    requires(is_coordinate<C, n> && texture_array::can_write)
  MLXG_INLINE void write(vec<T, 4> color, C c, uint layer, uint lod = 0) const {
    this->write_at(color, typename at::whole(c), layer, lod);
  }
  template <class C = typename at::real>
    requires(is_coordinate<C, n> && texture_array::can_sample)
  MLXG_INLINE vec<T, 4> sample(sampler s, C c, uint layer, typename at::offset offset = 0) const {
    return this->sample_at(s, typename at::real(c), layer, 0, offset);
  }
  template <class C = typename at::real, class Lod>
    requires(is_coordinate<C, n> && texture_array::can_sample && lanes<Lod> == 0)
  MLXG_INLINE vec<T, 4> sample(sampler s, C c, uint layer, Lod lod, typename at::offset offset = 0) const {
    return this->sample_at(s, typename at::real(c), layer, lod.mlxg_lod, offset);
  }
};

}  // namespace detail

#define MLXG_TEXTURE(NAME, BASE, AXES)          \
  template <class T, access A = access::sample> \
  struct NAME : detail::BASE<T, A, AXES>
#define MLXG_EXTENT(NAME, AXIS)                           \
  MLXG_INLINE uint NAME(uint = 0) const {                 \
    return mlxg_texture_extent(this->mlxg_texture, AXIS); \
  }
MLXG_TEXTURE(texture1d, plain_texture, 1){};
MLXG_TEXTURE(texture1d_array, texture_array, 1){};
MLXG_TEXTURE(texture2d, plain_texture, 2){MLXG_EXTENT(get_height, 1)};
MLXG_TEXTURE(texture2d_array, texture_array, 2){MLXG_EXTENT(get_height, 1)};
MLXG_TEXTURE(texture3d, plain_texture, 3){MLXG_EXTENT(get_height, 1) MLXG_EXTENT(get_depth, 2)};
#undef MLXG_TEXTURE
#undef MLXG_EXTENT

// The checker gives every texture of a launch.
template <class T, access A, int n>
MLXG_INLINE bool is_null_texture(const detail::texture_of<T, A, n>&) {
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
