// The chunks and decays of a state-space model. ssm.h has the formulas.

#include "chunk_bounds.h"
#include "chunk_decay.h"

// StepChunk is the steps of a slot. Slots count across batches, and `first` is an index among the steps of all batches.
struct StepChunk {
  size_t first;
  int rows;  // 0 or less if the slot has none
};

template <int CHUNK>
inline StepChunk step_chunk(ChunkSizes sizes, device const int* starts, int slot) {
  const int batch = slot / sizes.slots;
  const StepRange range = chunk_range<CHUNK>(sizes, starts, slot % sizes.slots);
  return {size_t(batch) * sizes.length + range.first, range.steps};
}

// step_count returns the number of steps of all batches.
inline size_t step_count(ChunkSizes sizes) {
  return size_t(sizes.batches) * sizes.length;
}

// StepDecay holds the sum b of a from the chunk's first step to a step, and the step's dt.
struct StepDecay {
  DecaySum sum;
  float dt;

  // from_start returns exp(b), the decay from the start of the chunk.
  float from_start() const { return exp(sum.total()); }
};
constant constexpr int STEP_DECAY_SIZE = 4;  // floats in memory; the last one is 0

inline StepDecay load_step_decay(device const float* decays, size_t step) {
  const Vec<float, STEP_DECAY_SIZE> values = reinterpret_cast<device const Vec<float, STEP_DECAY_SIZE>*>(decays)[step];
  return {{values.values[0], values.values[1]}, values.values[2]};
}

inline void store(StepDecay decay, device float* decays, size_t step) {
  const Vec<float, STEP_DECAY_SIZE> values = {{decay.sum.high, decay.sum.low, decay.dt, 0}};
  reinterpret_cast<device Vec<float, STEP_DECAY_SIZE>*>(decays)[step] = values;
}
