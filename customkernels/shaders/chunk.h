// Chunks of a recurrence along the length axis, and the decay of its state within a chunk.
//
// The rows of an array are its steps: batch after batch, or packed sequences one after the other. A sequence below is
// one of either. It is cut into chunks of `size` rows, of which the last may be shorter. Each chunk has a slot: an
// index among the chunks of all sequences. Packed sequence s begins at slot start / size + s, which leaves enough slots
// for every sequence, so some slots have no rows.

// ChunkSizes holds the sizes of a launch. The kernel input size_values has its members in this order.
struct ChunkSizes {
  int batches, length;
  int sequences;  // 0 without packed sequences
  int slots;
};

inline ChunkSizes chunk_sizes(device const int* values) {
  return {values[0], values[1], values[2], values[3]};
}

// chunk_rows returns the number of rows of all batches.
inline size_t chunk_rows(ChunkSizes sizes) {
  return size_t(sizes.batches) * sizes.length;
}

// chunk_start returns the first row of packed sequence s. The first sequence starts at 0, the last ends at `length`,
// and all starts are clamped to the axis. So invalid starts cause no access out of bounds, and ascending starts cover
// every row.
inline int chunk_start(ChunkSizes sizes, device const int* starts, int s) {
  return s == 0 ? 0 : s == sizes.sequences ? sizes.length : clamp(starts[s], 0, sizes.length);
}

// A ChunkSequence is the rows of a sequence, and the slot of its first chunk.
struct ChunkSequence {
  size_t first;
  int rows, slot;
};

inline ChunkSequence chunk_sequence(ChunkSizes sizes, device const int* starts, int size, int s) {
  if (sizes.sequences == 0) {
    return {size_t(s) * sizes.length, sizes.length, s * ((sizes.length + size - 1) / size)};
  }
  const int first = chunk_start(sizes, starts, s);
  return {size_t(first), max(chunk_start(sizes, starts, s + 1) - first, 0), first / size + s};
}

// A Chunk is the rows of a slot. `rows` is 0 or less if the slot has none.
struct Chunk {
  size_t first;
  int rows;
};

inline Chunk chunk_at(ChunkSizes sizes, device const int* starts, int size, int slot) {
  int s = 0;
  if (sizes.sequences == 0) {
    s = slot / ((sizes.length + size - 1) / size);
  }
  for (int end = sizes.sequences; end - s > 1;) {  // the last sequence whose first slot is `slot` or before
    const int middle = s + (end - s) / 2;
    if (chunk_start(sizes, starts, middle) / size + middle <= slot) {
      s = middle;
    } else {
      end = middle;
    }
  }
  const ChunkSequence sequence = chunk_sequence(sizes, starts, size, s);
  const int position = (slot - sequence.slot) * size;
  return {sequence.first + position, min(sequence.rows - position, size)};
}

// A ChunkDecay belongs to a row of a chunk. high + low is the sum b of the logarithms of the decay from the chunk's
// first row to this row. exp(b_t − b_j) is the decay of the state between two rows. After strong decays |b| is large,
// and the rounding error of a single float would be a large relative error of the exponential.
struct ChunkDecay {
  float high, low;
  float step;  // the factor of the row's input
  float log;   // the logarithm of the decay at this row
};
constant constexpr int CHUNK_DECAY_SIZE = 4;

// chunk_log limits the logarithm of a decay. exp(−128) is 0, as exp(−∞) is, but −∞ − −∞ is NaN. NaN stays NaN.
inline float chunk_log(float value) {
  return value < -128 ? -128.0f : value;
}

// chunk_next returns the ChunkDecay of the row after `last`.
inline ChunkDecay chunk_next(ChunkDecay last, float step, float log) {
  const float sum = last.high + log, added = sum - last.high;
  return {sum, last.low + ((last.high - (sum - added)) + (log - added)), step, log};
}

// chunk_decay returns the decay between two rows of a chunk.
inline float chunk_decay(ChunkDecay from, ChunkDecay to) {
  return exp((to.high - from.high) + (to.low - from.low));
}

// chunk_decay_from_start returns the decay from the start of the chunk to a row, inclusive.
inline float chunk_decay_from_start(ChunkDecay to) {
  return exp(to.high + to.low);
}

inline ChunkDecay chunk_load(device const float* decays, size_t row) {
  const Vec<float, CHUNK_DECAY_SIZE> values = reinterpret_cast<device const Vec<float, CHUNK_DECAY_SIZE>*>(decays)[row];
  return {values.values[0], values.values[1], values.values[2], values.values[3]};
}

inline void chunk_store(ChunkDecay decay, device float* decays, size_t row) {
  const Vec<float, CHUNK_DECAY_SIZE> values = {{decay.high, decay.low, decay.step, decay.log}};
  reinterpret_cast<device Vec<float, CHUNK_DECAY_SIZE>*>(decays)[row] = values;
}
