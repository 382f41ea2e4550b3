// A model of the instructions of metal_mma.h without an NVIDIA GPU. Lanes exchange their operands.
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

namespace host = ::mlxg;

inline unsigned this_lane() {
  return host::self().lane();
}

inline unsigned from_opposite(unsigned value, unsigned bit) {
  return simd_shuffle_xor(value, ushort(bit));
}

// The sum of c and N products with the rounding of tensor cores: products are exact, all terms are truncated at two
// bits below the last bit of the largest term, and the sum is truncated to a float (Fasi, Higham, Mikaitis and
// Pranesh, "Numerical behavior of NVIDIA tensor cores", 2021).
template <int N>
inline float sum_cut_off(float c, const float (&a)[N], const float (&b)[N]) {
  typedef decltype(1.0L) exact;  // Metal has no name for more than a float
  exact terms[N + 1], largest = 0, sum = 0;
  for (int k = 0; k <= N; k++) {
    terms[k] = k < N ? exact(a[k]) * exact(b[k]) : exact(c);
    sum += terms[k];
    const exact size = __builtin_fabsl(terms[k]);
    largest = size > largest ? size : largest;
  }
  if (!(largest > 0) || !(largest < MAXFLOAT)) {
    return float(sum);
  }
  const exact last = __builtin_ldexpl(exact(1), __builtin_ilogbl(largest) - 25);
  sum = 0;
  for (int k = 0; k <= N; k++) {
    sum += __builtin_truncl(terms[k] / last);
  }
  sum *= last;
  const float rounded = float(sum);
  const bool is_away = __builtin_fabsl(exact(rounded)) > __builtin_fabsl(sum);
  return is_away ? as_type<float>(as_type<unsigned>(rounded) - 1) : rounded;
}

// Eight 16-bit terms from the k-th on, of the rows lane / 4 and lane / 4 + 8.
template <class T, int N>
inline void unpack_eight(
    int k, unsigned a0, unsigned a1, unsigned b, float (&upper)[N], float (&lower)[N], float (&right)[2][N]) {
  const unsigned lane = this_lane();
  for (unsigned i = 0; i < 8; i++) {
    upper[k + i] = half_of<T>(simd_shuffle(a0, ushort(lane / 4 * 4 + i / 2)), i % 2);
    lower[k + i] = half_of<T>(simd_shuffle(a1, ushort(lane / 4 * 4 + i / 2)), i % 2);
    for (unsigned n = 0; n < 2; n++) {
      right[n][k + i] = half_of<T>(simd_shuffle(b, ushort((lane % 4 * 2 + n) * 4 + i / 2)), i % 2);
    }
  }
}

template <int N>
inline void add_products(float (&c)[4], const float (&upper)[N], const float (&lower)[N], const float (&right)[2][N]) {
  for (unsigned n = 0; n < 2; n++) {
    c[n] = sum_cut_off(c[n], upper, right[n]);
    c[2 + n] = sum_cut_off(c[2 + n], lower, right[n]);
  }
}

template <class T>
inline void multiply_16(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
  float upper[16], lower[16], right[2][16];
  unpack_eight<T>(0, a[0], a[1], b0, upper, lower, right);
  unpack_eight<T>(8, a[2], a[3], b1, upper, lower, right);
  add_products(c, upper, lower, right);
}

template <class T>
inline void multiply_8(float (&c)[4], const unsigned (&a)[2], unsigned b) {
  float upper[8], lower[8], right[2][8];
  unpack_eight<T>(0, a[0], a[1], b, upper, lower, right);
  add_products(c, upper, lower, right);
}

inline void multiply_tf32(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
  const unsigned lane = this_lane();
  float upper[8], lower[8], right[2][8];
  for (unsigned k = 0; k < 8; k++) {
    const ushort from = ushort(lane / 4 * 4 + k % 4);
    upper[k] = tf32_value(simd_shuffle(k < 4 ? a[0] : a[2], from));
    lower[k] = tf32_value(simd_shuffle(k < 4 ? a[1] : a[3], from));
    for (unsigned n = 0; n < 2; n++) {
      right[n][k] = tf32_value(simd_shuffle(k < 4 ? b0 : b1, ushort((lane % 4 * 2 + n) * 4 + k % 4)));
    }
  }
  add_products(c, upper, lower, right);
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

template <int COUNT>
inline void load_floats(float (&to)[COUNT], shared_place at) {
  for (int i = 0; i < COUNT; i++) {
    to[i] = reinterpret_cast<const float*>(at)[i];
  }
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

inline unsigned long long global_address(const void* p) {
  return (unsigned long long)p;
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
