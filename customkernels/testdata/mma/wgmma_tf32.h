// A model of the instructions of metal_wgmma_tf32.h without an NVIDIA GPU, as wgmma.h.
#pragma once

#include "wgmma.h"

namespace mlxg {

inline void publish_stores() {
  wait_for_copies();
}

inline void load_quad(unsigned (&words)[4], shared_place at) {
  for (int i = 0; i < 4; i++) {
    words[i] = load_shared<unsigned>(at + 4 * i);
  }
}

inline void store_quad(shared_place at, const unsigned (&words)[4]) {
  for (int i = 0; i < 4; i++) {
    store_shared(at + 4 * i, words[i]);
  }
}

// left_rows gets the 8 elements of the rows lane / 4 and lane / 4 + 8 of the warp.
inline void left_rows(const left_registers& left, float (&upper)[8], float (&lower)[8]) {
  for (unsigned k = 0; k < 8; k++) {
    const ushort from = ushort(this_lane() / 4 * 4 + k % 4);
    upper[k] = tf32_value(simd_shuffle(left.words[k / 4 * 2], from));
    lower[k] = tf32_value(simd_shuffle(left.words[k / 4 * 2 + 1], from));
  }
}

inline void left_rows(const matrix_descriptor& left, float (&upper)[8], float (&lower)[8]) {
  const unsigned row = host::self().thread / 32 % 4 * 16 + this_lane() / 4;
  for (unsigned k = 0; k < 8; k++) {
    upper[k] = tf32_value(bits_of(left.get<float>(row * 128 + k * 4)));
    lower[k] = tf32_value(bits_of(left.get<float>((row + 8) * 128 + k * 4)));
  }
}

template <bool ADD, int N, class LEFT>
inline void multiply_64_tf32(float (&f)[N][4], const LEFT& left, matrix_descriptor right) {
  float upper[8], lower[8], columns[2][8];
  left_rows(left, upper, lower);
  for (unsigned n = 0; n < N; n++) {
    for (unsigned i = 0; i < 2; i++) {
      const unsigned column = n * 8 + this_lane() % 4 * 2 + i;
      for (unsigned k = 0; k < 8; k++) {
        columns[i][k] = tf32_value(bits_of(right.get<float>(column * 128 + k * 4)));
      }
    }
    start_product<ADD>(f[n], upper, lower, columns);
  }
}

}  // namespace mlxg
