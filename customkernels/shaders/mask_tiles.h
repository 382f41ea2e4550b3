// Tiles of masks, for tiles of scores (tiles.h): rows are queries and columns keys, or,
// TRANSPOSED, rows are keys.
//
// A mask of numbers, or a host's of booleans, has elements where a lane's scores are; they are loaded
// (take) before the products that they are added to, whose time their way takes. With 32 lanes booleans
// are bits, packed before: words of 32 keys of a query, or, TRANSPOSED, of 32 queries of a key, that
// a tile asks for (ask) a turn before it takes them.

#include "tiles.h"

// Bits of 32 neighbours, the first in the lowest.
typedef uint Bits;

// Whether a mask says what is seen, and adds nothing to scores.
template <typename B>
struct IsSeen {
  enum { value = is_same<B, bool>::value || is_same<B, Bits>::value };
};

// The mask of a head of a batch. The sequence's first query and key are at `query` and `key`; a stride is
// 0 where the mask is broadcast. Of bits, the stride along a row is the number of its last word.
template <typename B>
struct Mask {
  device const B* values;
  uint query_stride, key_stride;
  int query, key;

  device const B* at(int q, int k) const {
    return values + (size_t(uint(query + q)) * query_stride + size_t(uint(key + k)) * key_stride);
  }
};

template <bool TRANSPOSED, typename B, int LANES, int M, int N>
struct MaskTile {
  typedef Tile<LANES, M, N> Scored;
  B elements[Scored::ROWS * Scored::COLUMNS];

  void ask(Mask<B>, int, int, int, int, uint) {}

  // Loads the tile at a query and a key, from which on the sequence has so many; beyond them
  // elements are 0.
  void take(Mask<B> mask, int query, int key, int queries, int keys, uint lane) {
    const int rows = TRANSPOSED ? keys : queries;
    const int columns = TRANSPOSED ? queries : keys;
    const uint down = TRANSPOSED ? mask.key_stride : mask.query_stride;
    const uint along = TRANSPOSED ? mask.query_stride : mask.key_stride;
    device const B* const first = mask.at(query, key);
    // A lane's neighbouring keys lie side by side, and none beyond the last.
    const bool is_packed = !TRANSPOSED && along == 1 && vec_aligned<2>(first, down) && (columns >= N || columns % 2 == 0);
    for (int i = 0; i < Scored::ROWS; i++) {
      device const B* const row = first + size_t(uint(min(Scored::row(i, lane), rows - 1))) * down;
      thread B* const to = elements + i * Scored::COLUMNS;
      if (is_packed) {
        for (int j = 0; j < Scored::COLUMNS; j += 2) {
          load_vec<2>(row, min(Scored::column(j, lane), (columns - 1) / 2 * 2), size_t(0), true, to + j);
        }
      } else {
        for (int j = 0; j < Scored::COLUMNS; j++) {
          to[j] = row[size_t(uint(min(Scored::column(j, lane), columns - 1))) * along];
        }
      }
    }
    if (rows < M || columns < N) {
      for (int i = 0; i < Scored::ROWS; i++) {
        for (int j = 0; j < Scored::COLUMNS; j++) {
          if (Scored::row(i, lane) >= rows || Scored::column(j, lane) >= columns) {
            elements[i * Scored::COLUMNS + j] = B(0);
          }
        }
      }
    }
  }

  // Whether no query of the tile sees a key of it.
  bool hides_all() const {
    if (!IsSeen<B>::value) {
      return false;
    }
    bool is_any = false;
    for (int e = 0; e < Scored::ROWS * Scored::COLUMNS; e++) {
      is_any |= elements[e] != B(0);
    }
    return !simd_any(is_any);
  }

  B get(int i, int j) const {
    return elements[i * Scored::COLUMNS + j];
  }
};

template <bool TRANSPOSED, int M, int N>
struct MaskTile<TRANSPOSED, Bits, 32, M, N> {
  typedef Tile<32, M, N> Scored;
  enum { WORDS = (N + 31) / 32 };
  uint asked[Scored::ROWS][WORDS + 1];  // from the one that the tile begins in
  uint shift;                           // of the tile's first bit there
  uint words[Scored::ROWS][WORDS];      // of this turn, from the lane's first column on

  // Says which tile is the next to be taken. Beyond the sequence it may have anything.
  void ask(Mask<Bits> mask, int query, int key, int queries, int keys, uint lane) {
    if (queries <= 0 || keys <= 0) {
      return;
    }
    const int rows = TRANSPOSED ? keys : queries;
    const uint first_row = TRANSPOSED ? mask.key + key : mask.query + query;
    const uint first = TRANSPOSED ? mask.query + query : mask.key + key;
    const uint last = TRANSPOSED ? mask.query_stride : mask.key_stride;
    const uint apart = TRANSPOSED ? mask.key_stride : mask.query_stride;
    shift = first % 32;
    for (int i = 0; i < Scored::ROWS; i++) {
      device const Bits* const row = mask.values + size_t(first_row + min(Scored::row(i, lane), rows - 1)) * apart;
      for (uint w = 0; w <= WORDS; w++) {
        asked[i][w] = 32 * w < shift + N ? row[min(first / 32 + w, last)] : 0u;
      }
    }
  }

  void take(Mask<Bits>, int, int, int, int, uint lane) {
    const uint of_tile = N % 32 == 0 ? ~0u : (1u << N % 32) - 1;
    for (int i = 0; i < Scored::ROWS; i++) {
      for (int w = 0; w < WORDS; w++) {
        const ulong two = ulong(asked[i][w + 1]) << 32 | asked[i][w];
        words[i][w] = (uint(two >> shift) & of_tile) >> Scored::column(0, lane);
      }
    }
  }

  bool hides_all() const {
    uint any = 0;
    for (int i = 0; i < Scored::ROWS; i++) {
      for (int w = 0; w < WORDS; w++) {
        any |= words[i][w];
      }
    }
    return !simd_any(any != 0);
  }

  // Of the columns of all lanes the first is a multiple of 8 and less.
  bool get(int i, int j) const {
    return words[i][Scored::column(j, 0) / 32] >> Scored::column(j, 0) % 32 & 1;
  }
};
