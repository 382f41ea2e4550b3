// Mask tiles for tiles of scores (tiles.h). Rows are queries and columns are keys; if TRANSPOSED, rows are keys.
//
// If the mask has numbers, or booleans with one lane, each lane loads the mask elements of its scores. It loads them
// before it computes the scores, so the computation hides the latency. With more lanes attention_mask_bits packs a
// boolean mask into bits first: a word has 32 keys of a query or, if TRANSPOSED, 32 queries of a key. prefetch reads
// the words of a tile one iteration before load.

#include "tiles.h"

// Bits holds 32 neighboring elements of a boolean mask, the first in the lowest bit.
typedef uint Bits;

// IsBoolean tells whether a mask of this type hides keys. Other masks are added to scores.
template <typename MASK_T>
struct IsBoolean {
  static constexpr constant bool value = is_same<MASK_T, bool>::value || is_same<MASK_T, Bits>::value;
};

// A Mask is the mask of one head of one batch. A stride is 0 along a broadcast axis.
template <typename MASK_T>
struct Mask {
  device const MASK_T* values;
  uint query_stride, key_stride;
  int query, key;  // position of the sequence's first query and key

  device const MASK_T* at(int q, int k) const {
    return values + (size_t(uint(query + q)) * query_stride + size_t(uint(key + k)) * key_stride);
  }
};

// A row of Bits has the keys of a query or, if TRANSPOSED, the queries of a key.
template <>
struct Mask<Bits> {
  device const Bits* values;
  uint row_stride, last_word;  // words from a row to the next, or 0, and index of a row's last word
  int query, key;
};

template <bool TRANSPOSED, typename MASK_T, int LANES, int ROWS, int COLUMNS>
struct MaskTile {
  typedef Tile<LANES, ROWS, COLUMNS> Scores;
  MASK_T elements[Scores::LANE_ROWS * Scores::LANE_COLUMNS];

  void prefetch(Mask<MASK_T>, int, int, int, int, uint) {}

  // load reads the tile whose first element is at `query` and `key`. `queries` and `keys` are the numbers of queries
  // and keys from there to the end of the sequence. Elements beyond the end are 0.
  void load(Mask<MASK_T> mask, int query, int key, int queries, int keys, uint lane) {
    const int rows = TRANSPOSED ? keys : queries;
    const int columns = TRANSPOSED ? queries : keys;
    const uint row_stride = TRANSPOSED ? mask.key_stride : mask.query_stride;
    const uint column_stride = TRANSPOSED ? mask.query_stride : mask.key_stride;
    device const MASK_T* const first = mask.at(query, key);
    // A lane's two neighboring keys are adjacent in memory. No pair may cross the row's end.
    const bool has_pairs = columns >= COLUMNS || columns % 2 == 0;
    const bool is_packed = !TRANSPOSED && column_stride == 1 && vec_aligned<2>(first, row_stride) && has_pairs;
    for (int i = 0; i < Scores::LANE_ROWS; i++) {
      device const MASK_T* const row = first + size_t(uint(min(Scores::row(i, lane), rows - 1))) * row_stride;
      thread MASK_T* const to = elements + i * Scores::LANE_COLUMNS;
      if (is_packed) {
        for (int j = 0; j < Scores::LANE_COLUMNS; j += 2) {
          load_vec<2>(row, min(Scores::column(j, lane), (columns - 1) / 2 * 2), size_t(0), true, to + j);
        }
      } else {
        for (int j = 0; j < Scores::LANE_COLUMNS; j++) {
          to[j] = row[size_t(uint(min(Scores::column(j, lane), columns - 1))) * column_stride];
        }
      }
    }
    if (rows < ROWS || columns < COLUMNS) {
      for (int i = 0; i < Scores::LANE_ROWS; i++) {
        for (int j = 0; j < Scores::LANE_COLUMNS; j++) {
          if (Scores::row(i, lane) >= rows || Scores::column(j, lane) >= columns) {
            elements[i * Scores::LANE_COLUMNS + j] = MASK_T(0);
          }
        }
      }
    }
  }

  // hides_all reports whether the mask hides every key of the tile from every query. All lanes call it.
  bool hides_all() const {
    if (!IsBoolean<MASK_T>::value) {
      return false;
    }
    bool is_any = false;
    for (int e = 0; e < Scores::LANE_ROWS * Scores::LANE_COLUMNS; e++) {
      is_any |= elements[e] != MASK_T(0);
    }
    return !any_lane<LANES>(is_any);
  }

  MASK_T get(int i, int j) const { return elements[i * Scores::LANE_COLUMNS + j]; }
};

template <bool TRANSPOSED, typename MASK_T, int ROWS, int COLUMNS>
struct MaskTile<TRANSPOSED, MASK_T, BY_COLUMNS, ROWS, COLUMNS> {
  MASK_T elements[COLUMNS][ROWS];

  void prefetch(Mask<MASK_T>, int, int, int, int, uint) {}

  void load(Mask<MASK_T> mask, int query, int key, int queries, int keys, uint) {
    const int rows = TRANSPOSED ? keys : queries;
    const int columns = TRANSPOSED ? queries : keys;
    const uint row_stride = TRANSPOSED ? mask.key_stride : mask.query_stride;
    const uint column_stride = TRANSPOSED ? mask.query_stride : mask.key_stride;
    for (int j = 0; j < COLUMNS; j++) {
      device const MASK_T* const column = mask.at(query, key) + size_t(j) * column_stride;
      if (j < columns && rows >= ROWS && row_stride == 1) {
        for (int i = 0; i < ROWS; i++) {
          elements[j][i] = column[i];
        }
      } else {
        for (int i = 0; i < ROWS; i++) {
          elements[j][i] = j < columns && i < rows ? column[size_t(i) * row_stride] : MASK_T(0);
        }
      }
    }
  }

  bool hides_all() const {
    if (!IsBoolean<MASK_T>::value) {
      return false;
    }
    bool is_any = false;
    for (int j = 0; j < COLUMNS; j++) {
      for (int i = 0; i < ROWS; i++) {
        is_any |= elements[j][i] != MASK_T(0);
      }
    }
    return !is_any;
  }

  MASK_T get(int i, int j) const { return elements[j][i]; }
};

template <bool TRANSPOSED, int LANES, int ROWS, int COLUMNS>
struct MaskTile<TRANSPOSED, Bits, LANES, ROWS, COLUMNS> {
  typedef Tile<LANES, ROWS, COLUMNS> Scores;
  static constexpr constant int WORDS = (COLUMNS + 31) / 32;
  uint prefetched[Scores::LANE_ROWS][WORDS + 1];  // words of the next tile, from the word with its first bit
  uint shift;                                     // position of the first bit in that word
  uint words[Scores::LANE_ROWS][WORDS];           // the current tile; bit 0 is the lane's first column

  // prefetch starts to load the words of the next tile. Bits beyond the sequence may have any value.
  void prefetch(Mask<Bits> mask, int query, int key, int queries, int keys, uint lane) {
    if (queries <= 0 || keys <= 0) {
      return;
    }
    const int rows = TRANSPOSED ? keys : queries;
    const uint first_row = TRANSPOSED ? mask.key + key : mask.query + query;
    const uint first = TRANSPOSED ? mask.query + query : mask.key + key;
    shift = first % 32;
    for (int i = 0; i < Scores::LANE_ROWS; i++) {
      device const Bits* const row =
          mask.values + size_t(first_row + min(Scores::row(i, lane), rows - 1)) * mask.row_stride;
      for (uint w = 0; w <= WORDS; w++) {
        prefetched[i][w] = 32 * w < shift + COLUMNS ? row[min(first / 32 + w, mask.last_word)] : 0u;
      }
    }
  }

  void load(Mask<Bits>, int, int, int, int, uint lane) {
    const uint columns = COLUMNS % 32 == 0 ? ~0u : (1u << COLUMNS % 32) - 1;
    for (int i = 0; i < Scores::LANE_ROWS; i++) {
      for (int w = 0; w < WORDS; w++) {
        const ulong pair = ulong(prefetched[i][w + 1]) << 32 | prefetched[i][w];
        words[i][w] = (uint(pair >> shift) & columns) >> Scores::column(0, lane);
      }
    }
  }

  bool hides_all() const {
    uint any = 0;
    for (int i = 0; i < Scores::LANE_ROWS; i++) {
      for (int w = 0; w < WORDS; w++) {
        any |= words[i][w];
      }
    }
    return !any_lane<LANES>(any != 0);
  }

  // Column j of a lane is column(j, 0) + column(0, lane), and both are in the same word. load has shifted the word by
  // column(0, lane).
  bool get(int i, int j) const { return words[i][Scores::column(j, 0) / 32] >> Scores::column(j, 0) % 32 & 1; }
};
