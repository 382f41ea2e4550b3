// metal_mma.h of the CUDA executor without an NVIDIA GPU: what its instructions do, by
// exchanges between the lanes. Products are exact and added in the order of their terms.
#pragma once

namespace mlxg {

template <class T>
inline unsigned bits_of(T value) {
  if constexpr (sizeof(T) == 2) {
    return as_type<ushort>(value);
  } else {
    return as_type<unsigned>(value);
  }
}

template <class T>
inline unsigned packed_pair(float first, float second) {
  return bits_of(T(first)) | bits_of(T(second)) << 16;
}

template <class T>
inline float half_of(unsigned pair, unsigned which) {
  return float(as_type<T>(ushort(pair >> 16 * which)));
}

inline float tf32_value(unsigned bits) {
  return as_type<float>(bits & 0xffffe000u);
}

inline unsigned this_lane() {
  return simd_prefix_exclusive_sum(1u);
}

// Eight terms of 16 bits, of the rows lane / 4 and eight below.
template <class T>
inline void add_eight(float (&c)[4], unsigned a0, unsigned a1, unsigned b) {
  const unsigned lane = this_lane();
  for (unsigned k = 0; k < 8; k++) {
    const unsigned upper = simd_shuffle(a0, ushort(lane / 4 * 4 + k / 2)), lower = simd_shuffle(a1, ushort(lane / 4 * 4 + k / 2));
    for (unsigned n = 0; n < 2; n++) {
      const float right = half_of<T>(simd_shuffle(b, ushort((lane % 4 * 2 + n) * 4 + k / 2)), k % 2);
      c[n] += half_of<T>(upper, k % 2) * right;
      c[2 + n] += half_of<T>(lower, k % 2) * right;
    }
  }
}

template <class T>
inline void multiply_16(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
  add_eight<T>(c, a[0], a[1], b0);
  add_eight<T>(c, a[2], a[3], b1);
}

template <class T>
inline void multiply_8(float (&c)[4], const unsigned (&a)[2], unsigned b) {
  add_eight<T>(c, a[0], a[1], b);
}

inline void multiply_tf32(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
  const unsigned lane = this_lane();
  for (unsigned k = 0; k < 8; k++) {
    const ushort from = ushort(lane / 4 * 4 + k % 4);
    const float upper = tf32_value(simd_shuffle(k < 4 ? a[0] : a[2], from));
    const float lower = tf32_value(simd_shuffle(k < 4 ? a[1] : a[3], from));
    for (unsigned n = 0; n < 2; n++) {
      const float right = tf32_value(simd_shuffle(k < 4 ? b0 : b1, ushort((lane % 4 * 2 + n) * 4 + k % 4)));
      c[n] += upper * right;
      c[2 + n] += lower * right;
    }
  }
}

using shared_place = unsigned long long;
inline shared_place shared_address(const void* p) {
  return shared_place(p);
}

template <class T>
inline T load_shared(shared_place at) {
  return *reinterpret_cast<const T*>(at);
}

template <class T>
inline void store_shared(shared_place at, T value) {
  *reinterpret_cast<T*>(at) = value;
}

template <bool TRANSPOSED, int COUNT>
inline void load_matrices(unsigned (&r)[COUNT], shared_place at) {
  const unsigned lane = this_lane();
  for (unsigned i = 0; i < COUNT; i++) {
    unsigned words[2];
    for (unsigned e = 0; e < 2; e++) {
      const unsigned row = TRANSPOSED ? lane % 4 * 2 + e : lane / 4, column = TRANSPOSED ? lane / 4 : lane % 4 * 2 + e;
      words[e] = reinterpret_cast<const ushort*>(simd_shuffle(at, ushort(8 * i + row)))[column];
    }
    r[i] = words[0] | words[1] << 16;
  }
}

template <int BYTES>
inline void copy_ahead(shared_place to, const void* from, bool there) {
  for (int i = 0; i < BYTES; i++) {
    reinterpret_cast<char*>(to)[i] = there ? static_cast<const char*>(from)[i] : 0;
  }
}

inline void wait_for_copies() {
  threadgroup_barrier(mem_flags::mem_threadgroup);
}

inline void make_anew(unsigned&) {}

}  // namespace mlxg
