// The decay of the state of a state-space model, and its gradients. ssm.h has the formulas.
//
// A thread computes one chunk of one head, step after step. Neighboring threads have neighboring heads. Launch: any
// threadgroup, one thread for each slot and head.
//
// Device traffic in floats, for each step and head: ssm_step_decays 5; ssm_decay_backward 8, and STATE_DIM for
// each chunk and half of the parts.

#include "vectors.h"

#include "ssm_steps.h"

template <int CHUNK, int HEADS>
[[kernel]] void ssm_step_decays(
    device const float* dt [[buffer(0)]],
    device const float* a [[buffer(1)]],
    device const int* starts [[buffer(2)]],
    device const int* size_values [[buffer(3)]],
    device float* decays [[buffer(4)]],
    uint index [[thread_position_in_grid]]) {
  const ChunkSizes sizes = load_chunk_sizes(size_values);
  const int slot = index / HEADS, head = index % HEADS;
  if (slot >= sizes.batches * sizes.slots) {
    return;
  }
  const StepChunk chunk = step_chunk<CHUNK>(sizes, starts, slot);
  const size_t first = step_count(sizes) * head + chunk.first;
  StepDecay decay = {};
  for (int t = 0; t < chunk.rows; t++) {
    decay.dt = dt[(chunk.first + t) * HEADS + head];
    // fma keeps a compiler from fusing the product with the additions of DecaySum.
    decay.sum.add_log_decay(fma(decay.dt, a[head], 0.0f));
    store(decay, decays, first + t);
  }
}

// terms has {x_t·u_t, x_t·dy_t, exp(b_end − b_t)·dt_t·x_t·G·B_t} of each step, output_terms has exp(b_t)·dy_t·S·C_t,
// and decay_parts has the terms of the last sum of da for each block of BLOCK_M steps i.
template <int CHUNK, int BLOCK_M, int HEADS, int STATE_DIM>
[[kernel]] void ssm_decay_backward(
    device const float* a [[buffer(0)]],
    device const float* decays [[buffer(1)]],
    device const float* terms [[buffer(2)]],
    device const float* output_terms [[buffer(3)]],
    device const float* decay_parts [[buffer(4)]],
    device const float* state_terms [[buffer(5)]],
    device const int* starts [[buffer(6)]],
    device const int* size_values [[buffer(7)]],
    device float* ddt [[buffer(8)]],
    device float* da_parts [[buffer(9)]],
    device float* dd_parts [[buffer(10)]],
    uint index [[thread_position_in_grid]]) {
  const ChunkSizes sizes = load_chunk_sizes(size_values);
  const int slot = index / HEADS, head = index % HEADS;
  if (slot >= sizes.batches * sizes.slots) {
    return;
  }
  const StepChunk chunk = step_chunk<CHUNK>(sizes, starts, slot);
  const size_t rows = step_count(sizes), first = rows * head + chunk.first;
  device const Vec<float, 4>* const own = reinterpret_cast<device const Vec<float, 4>*>(terms) + first;
  float before = 0, after = 0, da = 0, dd = 0;  // before: the sum over j < t; after: the sum over i ≥ t
  for (int t = 0; t < chunk.rows; t++) {
    ddt[(chunk.first + t) * HEADS + head] = before;
    before += own[t].values[2];
  }
  float state_sum = 0;
  for (int n = 0; n < STATE_DIM && chunk.rows > 0; n++) {
    state_sum += state_terms[(size_t(slot) * HEADS + head) * STATE_DIM + n];
  }
  if (chunk.rows > 0) {
    const StepDecay last = load_step_decay(decays, first + chunk.rows - 1);
    state_sum *= last.from_start();
  }
  for (int t = chunk.rows - 1; t >= 0; t--) {
    float among = 0;
    for (int block = t / BLOCK_M; block * BLOCK_M < chunk.rows; block++) {
      among += decay_parts[rows * HEADS * block + first + t];
    }
    const size_t at = (chunk.first + t) * HEADS + head;
    after += output_terms[first + t];
    const float da_t = state_sum + ddt[at] + after + among;
    ddt[at] = own[t].values[0] + (da_t == 0 ? 0.0f : a[head] * da_t);  // a may be −∞
    da += da_t == 0 ? 0.0f : load_step_decay(decays, first + t).dt * da_t;
    dd += own[t].values[1];
  }
  da_parts[index] = da;
  dd_parts[index] = dd;
}
