// The chunks of sequences. A chunk has up to CHUNK consecutive steps of one sequence. Only the last chunk of a sequence
// may have fewer. Chunks have slots in a head's arrays, which are in the order of the steps. Without packed sequences
// chunk i of a sequence has slot i. The first chunk of packed sequence s has slot start / CHUNK + s, which leaves
// enough slots for every sequence; some slots stay empty.

// ChunkSizes holds the sizes of a launch. The kernel input size_values has its members in this order.
struct ChunkSizes {
  int batches;
  int key_heads, value_heads;
  int length;
  int sequences;  // 0 without packed sequences
  int slots;      // of a head

  // key_head returns the head of q and k that a value head uses. Neighboring value heads share one.
  int key_head(int value_head) const { return value_head / (value_heads / key_heads); }

  // start_of returns the first step of packed sequence s. The first sequence starts at 0, the last ends at `length`,
  // and all starts are clamped. So invalid starts cause no access out of bounds.
  int start_of(device const int* starts, int s) const {
    return s == 0 ? 0 : s == sequences ? length : clamp(starts[s], 0, length);
  }
};

inline ChunkSizes load_chunk_sizes(device const int* sizes) {
  return {sizes[0], sizes[1], sizes[2], sizes[3], sizes[4], sizes[5]};
}

// A StepRange is a range of steps: a chunk or a sequence. It is empty if `steps` is 0 or less.
struct StepRange {
  int first, steps;
  int slot;  // of the chunk, or of the sequence's first chunk
};

// sequence_range returns the steps of sequence s. Without packed sequences s must be 0.
template <int CHUNK>
inline StepRange sequence_range(ChunkSizes sizes, device const int* starts, int s) {
  if (sizes.sequences == 0) {
    return {0, sizes.length, 0};
  }
  const int start = sizes.start_of(starts, s);
  return {start, sizes.start_of(starts, s + 1) - start, start / CHUNK + s};
}

// chunk_range returns the steps of the chunk in a slot.
template <int CHUNK>
inline StepRange chunk_range(ChunkSizes sizes, device const int* starts, int slot) {
  int s = 0;  // the last sequence whose first slot is `slot` or before
  for (int end = sizes.sequences; end - s > 1;) {
    const int middle = s + (end - s) / 2;
    if (sizes.start_of(starts, middle) / CHUNK + middle <= slot) {
      s = middle;
    } else {
      end = middle;
    }
  }
  const StepRange sequence = sequence_range<CHUNK>(sizes, starts, s);
  const int passed = (slot - sequence.slot) * CHUNK;
  return {sequence.first + passed, min(sequence.steps - passed, CHUNK), slot};
}
