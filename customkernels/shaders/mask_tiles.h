// Tiles of masks, for tiles of scores (tiles.h): rows are queries and columns keys, or,
// TRANSPOSED, rows are keys.
//
// A mask of numbers has elements where a lane's scores are; they are loaded (take) before the
// products that they are added to, whose time their way takes. One of booleans has bits, in simdgroups
// of 32 lanes: a lane loads 16 neighbouring keys of a query at once, which spares a GPU's cache a
// hundred small loads, and lanes hand on what others need. That takes time too, so a tile is asked
// for (ask) a turn before it is taken. Where keys do not lie so, bits are loaded one by one.

#include "tiles.h"

// The mask of a head of a batch, from a sequence's first query and key on. A stride is 0 where
// the mask is broadcast.
template <typename B>
struct Mask {
  device const B* values;
  uint query_stride, key_stride;
  bool is_packed;  // whether each 16 keys of a query are a pack of memory

  device const B* at(uint query, uint key) const {
    return values + (size_t(query) * query_stride + size_t(key) * key_stride);
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
    // A lane's neighbouring keys lie side by side.
    const bool is_packed = !TRANSPOSED && along == 1 && packed<2>(first, down);
    for (int i = 0; i < Scored::ROWS; i++) {
      device const B* const row = first + size_t(uint(min(Scored::row(i, lane), rows - 1))) * down;
      thread B* const to = elements + i * Scored::COLUMNS;
      if (is_packed) {
        for (int j = 0; j < Scored::COLUMNS; j += 2) {
          read<2>(row, min(Scored::column(j, lane), (columns - 1) / 2 * 2), size_t(0), true, to + j);
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
    if (!is_same<B, bool>::value) {
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
struct MaskTile<TRANSPOSED, bool, 32, M, N> {
  typedef Tile<32, M, N> Scored;
  static_assert(M <= 16, "a word has the bits of two columns of a tile, or of 32 of its row");
  enum { QUERIES = TRANSPOSED ? N : M, KEYS = TRANSPOSED ? M : N };
  // Packs of 16 keys: of a query, and of the tile; and how many each lane loads.
  enum { PACKS = KEYS % 16 == 0 ? KEYS / 16 : 0, ALL = QUERIES * PACKS, TURNS = (ALL + 31) / 32 };
  // Words of 32 keys of a row, or of the keys of two neighbouring queries.
  enum { ROW_WORDS = (N + 31) / 32, WORDS = TRANSPOSED ? Scored::COLUMNS / 2 : Scored::ROWS * ROW_WORDS };

  uint asked[WORDS > 4 * TURNS ? WORDS : 4 * TURNS];  // packs, or words
  bool is_packed;
  uint words[WORDS];  // of this turn

  // The word and the bit of a score. A word begins with the lane's own first row or column, so
  // that both are the same for all lanes.
  static int word(int i, int j) {
    return TRANSPOSED ? j / 2 : i * ROW_WORDS + Scored::column(j, 0) / 32;
  }
  static int bit(int i, int j) {
    return TRANSPOSED ? j % 2 * 16 + Scored::row(i, 0) : Scored::column(j, 0) % 32;
  }

  // Says which tile is the next to be taken. Beyond the sequence it may have anything.
  void ask(Mask<bool> mask, int query, int key, int queries, int keys, uint lane) {
    is_packed = false;
    if (queries <= 0 || keys <= 0) {
      return;
    }
    device const bool* const first = mask.at(query, key);
    is_packed = PACKS > 0 && mask.is_packed && queries >= QUERIES && keys >= KEYS;
    if (is_packed) {
      const int packs = PACKS > 0 ? PACKS : 1;
      for (int t = 0; t < TURNS; t++) {
        const int p = t * 32 + int(lane);
        Pack<uint, 4> pack = {};
        if (p < ALL) {
          pack = reinterpret_cast<device const Pack<uint, 4>*>(first + size_t(uint(p / packs)) * mask.query_stride)[p % packs];
        }
        for (int k = 0; k < 4; k++) {
          asked[4 * t + k] = pack.values[k];
        }
      }
      return;
    }
    for (int w = 0; w < WORDS; w++) {
      asked[w] = 0;
    }
    for (int i = 0; i < Scored::ROWS; i++) {
      for (int j = 0; j < Scored::COLUMNS; j++) {
        const int r = Scored::row(i, lane), c = Scored::column(j, lane);
        const int q = min(TRANSPOSED ? c : r, queries - 1), k = min(TRANSPOSED ? r : c, keys - 1);
        asked[word(i, j)] |= uint(*mask.at(query + q, key + k)) << bit(i, j);
      }
    }
  }

  void take(Mask<bool>, int, int, int, int, uint lane) {
    if (!is_packed) {
      for (int w = 0; w < WORDS; w++) {
        words[w] = asked[w];
      }
      return;
    }
    // Pack p is with lane p mod 32. Neighbours are one query's, or two queries'.
    uint pairs[TURNS > 0 ? TURNS : 1];
    for (int t = 0; t < TURNS; t++) {
      uint bits = 0;
      for (int k = 0; k < 4; k++) {
        // Four bytes, each 0 or 1, as four bits: the product's highest byte is b0 + 2·b1 + 4·b2 + 8·b3.
        bits |= (asked[4 * t + k] * 0x01020408u >> 24) << (4 * k);
      }
      pairs[t] = bits | simd_shuffle_xor(bits, ushort(1)) << 16;
    }
    for (int w = 0; w < WORDS; w++) {
      const int i = w / ROW_WORDS, part = w % ROW_WORDS;
      const int turn = (TRANSPOSED ? Scored::column(2 * w, 0) : Scored::row(i, 0) * PACKS + 2 * part) / 32;
      const int p = TRANSPOSED ? Scored::column(2 * w, lane) : Scored::row(i, lane) * PACKS + 2 * part;
      const int begin = TRANSPOSED ? Scored::row(0, lane) : Scored::column(0, lane);
      words[w] = simd_shuffle(pairs[turn], ushort(p % 32)) >> begin;
    }
  }

  bool hides_all() const {
    uint any = 0;
    for (int w = 0; w < WORDS; w++) {
      any |= words[w];
    }
    return !simd_any(any != 0);
  }

  bool get(int i, int j) const {
    return words[word(i, j)] >> bit(i, j) & 1;
  }
};
