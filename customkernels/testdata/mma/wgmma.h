// A model of the instructions of metal_wgmma.h without an NVIDIA GPU. A product is visible after read_again, as a
// product that runs asynchronously is. Until then its registers are NaN.
#pragma once

#include "mma.h"

namespace mlxg {

// pending holds the results of products that were not read again, by the address of their registers. The threads of a
// kernel have stacks of their own, so no two share an entry.
struct pending {
  static constexpr unsigned SIZE = 1 << 17;
  unsigned long long registers;
  float results[4];

  static pending& find(const float (&f)[4]) {
    static pending all[SIZE];
    const unsigned long long wanted = (unsigned long long)&f[0];
    for (unsigned i = wanted / sizeof f * 0x9e3779b97f4a7c15ull >> 47;; i = (i + 1) % SIZE) {
      const unsigned long long found = __sync_val_compare_and_swap(&all[i].registers, 0ull, wanted);
      if (found == 0) {
        all[i].clear();
        return all[i];
      }
      if (found == wanted) {
        return all[i];
      }
    }
  }

  bool has_results() const { return results[0] == results[0]; }

  void clear() {
    for (int i = 0; i < 4; i++) {
      results[i] = NAN;
    }
  }
};

inline void begin_products() {}
inline void end_products() {}

template <int PENDING>
inline void wait_for_products() {}

inline void read_again(float (&f)[4]) {
  pending& p = pending::find(f);
  for (int i = 0; i < 4 && p.has_results(); i++) {
    f[i] = p.results[i];
  }
  p.clear();
}

inline void publish_copies() {
  wait_for_copies();
}

// Every lane of the warpgroup would have to know the values of all others. Attention may process a tile that no lane
// needs.
inline bool any_in_warpgroup(bool) {
  return true;
}

template <int TO, int FROM>
inline void copy_piece(shared_place to, unsigned long long from, bool there) {
  copy_ahead<16>(to + TO, reinterpret_cast<const void*>(from + FROM), there);
}

inline void store_words(void* to, const unsigned (&words)[4]) {
  for (int i = 0; i < 4; i++) {
    static_cast<unsigned*>(to)[i] = words[i];
  }
}

inline void keep(unsigned&) {}

// Byte `at` of a matrix is at base + at, in the swizzled order. The base stands for a multiple of 1024.
struct matrix_descriptor {
  shared_place base;
  unsigned first, apart;

  matrix_descriptor after(unsigned bytes) const { return {base, first + bytes, apart}; }

  template <class T>
  float get(unsigned at) const {
    at += first;
    return float(load_shared<T>(base + (at ^ at / 128 % 8 * 16)));
  }
};

inline matrix_descriptor describe(shared_place at, unsigned apart) {
  return {at, 0, apart};
}

struct left_registers {
  unsigned words[4];
};

// left_rows gets the 16 elements of the rows lane / 4 and lane / 4 + 8 of the warp.
template <class T>
inline void left_rows(const left_registers& left, float (&upper)[16], float (&lower)[16]) {
  float unused[2][16];
  unpack_eight<T>(0, left.words[0], left.words[1], 0, upper, lower, unused);
  unpack_eight<T>(8, left.words[2], left.words[3], 0, upper, lower, unused);
}

template <class T>
inline void left_rows(const matrix_descriptor& left, float (&upper)[16], float (&lower)[16]) {
  const unsigned row = host::self().thread / 32 % 4 * 16 + this_lane() / 4;
  for (unsigned k = 0; k < 16; k++) {
    upper[k] = left.get<T>(row * 128 + k * 2);
    lower[k] = left.get<T>((row + 8) * 128 + k * 2);
  }
}

// start_product starts f = left·right, or f += left·right if ADD, for a fragment.
template <bool ADD, int K>
inline void start_product(
    float (&f)[4], const float (&upper)[K], const float (&lower)[K], const float (&columns)[2][K]) {
  pending& p = pending::find(f);
  const bool has_results = p.has_results();
  for (int i = 0; i < 4; i++) {
    if (!ADD) {
      p.results[i] = 0;
    } else if (!has_results) {
      p.results[i] = f[i];
    }
    f[i] = NAN;
  }
  add_products(p.results, upper, lower, columns);
}

template <class T, bool TRANSPOSED, bool ADD, int N, class LEFT>
inline void multiply_64(float (&f)[N][4], const LEFT& left, matrix_descriptor right) {
  float upper[16], lower[16], columns[2][16];
  left_rows<T>(left, upper, lower);
  for (unsigned n = 0; n < N; n++) {
    for (unsigned i = 0; i < 2; i++) {
      const unsigned column = n * 8 + this_lane() % 4 * 2 + i;
      for (unsigned k = 0; k < 16; k++) {
        columns[i][k] =
            right.get<T>(TRANSPOSED ? column / 64 * right.apart + k * 128 + column % 64 * 2 : column * 128 + k * 2);
      }
    }
    start_product<ADD>(f[n], upper, lower, columns);
  }
}

}  // namespace mlxg
