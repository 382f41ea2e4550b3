// One step of the gated delta rule, for decoding. gated_delta.h has the formulas.
// Reference: compare/oracle/gateddelta.go, GatedDelta.Forward with one step.
//
// A thread computes COLUMNS columns of the state, of u and of o.
//
//   parameter    meaning                         constraint
//   T            dtype of q, k, v and o          float, half, bfloat
//   COLUMNS      columns of a thread             divides VALUE_DIM
//   HEAD_DIM     elements of q and k
//   VALUE_DIM    elements of v and o
//
// Launch: the position of a thread is the block of columns along x, the value head along y and the batch along z.
// key_heads is the number of heads of q and k.
//
// Device traffic for each value head: 3·HEAD_DIM·VALUE_DIM floats, because the state is read twice.

#include <metal_stdlib>
using namespace metal;

template <typename T, int COLUMNS, int HEAD_DIM, int VALUE_DIM>
[[kernel]] void gated_delta_step(
    device const T* q [[buffer(0)]],
    device const T* k [[buffer(1)]],
    device const T* v [[buffer(2)]],
    device const float* log_decay [[buffer(3)]],
    device const float* beta [[buffer(4)]],
    device const float* state [[buffer(5)]],
    constant uint& key_heads [[buffer(6)]],
    constant float& scale [[buffer(7)]],
    device T* o [[buffer(8)]],
    device float* next_state [[buffer(9)]],
    uint3 thread_position [[thread_position_in_grid]],
    uint3 threads [[threads_per_grid]]) {
  const uint column = thread_position.x * COLUMNS;
  if (column >= VALUE_DIM) {
    return;
  }
  const uint value_heads = threads.y, head = thread_position.y, batch = thread_position.z;
  const size_t index = size_t(batch) * value_heads + head;
  const size_t key = (size_t(batch) * key_heads + head / (value_heads / key_heads)) * HEAD_DIM;
  const size_t first = index * (HEAD_DIM * VALUE_DIM) + column;
  const float decay = exp(log_decay[index]);
  float sums[COLUMNS] = {}, updates[COLUMNS], outputs[COLUMNS] = {};
  for (int row = 0; row < HEAD_DIM; row++) {
    for (int c = 0; c < COLUMNS; c++) {
      sums[c] += state[first + row * VALUE_DIM + c] * float(k[key + row]);
    }
  }
  for (int c = 0; c < COLUMNS; c++) {
    updates[c] = beta[index] * (float(v[index * VALUE_DIM + column + c]) - decay * sums[c]);
  }
  for (int row = 0; row < HEAD_DIM; row++) {
    const float key_element = float(k[key + row]), query = scale * float(q[key + row]);
    for (int c = 0; c < COLUMNS; c++) {
      const size_t at = first + row * VALUE_DIM + c;
      const float next = decay * state[at] + key_element * updates[c];
      next_state[at] = next;
      outputs[c] += next * query;
    }
  }
  for (int c = 0; c < COLUMNS; c++) {
    o[index * VALUE_DIM + column + c] = T(outputs[c]);
  }
}
