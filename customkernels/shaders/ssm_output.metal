// The output of a state-space model. ssm.h has the formulas and parameters.
//
// A simdgroup owns BLOCK_M steps of a chunk and iterates over the chunk's earlier steps.
//
// Launch: the position of a threadgroup along x is the index of its block of BLOCK_M · SIMDGROUPS steps among the
// blocks of all slots, and along y the head.
//
// Device traffic for each head: x, C and y once, the states of chunks once for each block of a chunk, and x and B of a
// chunk's earlier steps once for each block.

#include "ssm.h"

template <
    typename T,
    int LANES,
    int SIMDGROUPS,
    int BLOCK_M,
    int BLOCK_N,
    int CHUNK,
    int HEADS,
    int GROUPS,
    int HEAD_DIM,
    int STATE_DIM>
[[kernel]] void ssm_output(
    device const T* x [[buffer(0)]],
    device const T* b [[buffer(1)]],
    device const T* c [[buffer(2)]],
    device const float* d [[buffer(3)]],
    device const float* states [[buffer(4)]],
    device const float* decays [[buffer(5)]],
    device const int* starts [[buffer(6)]],
    device const int* size_values [[buffer(7)]],
    device T* y [[buffer(8)]],
    uint3 group [[threadgroup_position_in_grid]],
    uint lane [[thread_index_in_simdgroup]],
    uint simdgroup [[simdgroup_index_in_threadgroup]]) {
  constexpr int X_STRIDE = HEADS * HEAD_DIM, B_STRIDE = GROUPS * STATE_DIM;
  typedef ChunkProduct<false, T, LANES, SIMDGROUPS, BLOCK_M, BLOCK_N, CHUNK, STATE_DIM, B_STRIDE, HEAD_DIM, X_STRIDE>
      Product;
  threadgroup T right_memory[Product::RightPanel::SIZE];
  threadgroup T value_memory[Product::ValuePanel::SIZE];
  threadgroup float state_memory[Product::StatePanel::SIZE];
  Product product = {};
  if (!product.begin(size_values, starts, group.x, lane, simdgroup)) {
    return;
  }
  const int head = group.y;
  product.load_decays(decays, head);
  const int in_x = head * HEAD_DIM, in_b = head / (HEADS / GROUPS) * STATE_DIM;
  const size_t first = product.chunk.first;
  device const T* const left = c + product.row * B_STRIDE + in_b;
  typename Product::Sum sum;
  fill(sum, 0);
  product.add_state(sum, left, states + (size_t(product.slot) * HEADS + head) * (STATE_DIM * HEAD_DIM), state_memory);
  product.add_steps(sum, left, b + first * B_STRIDE + in_b, x + first * X_STRIDE + in_x, right_memory, value_memory);
  float factors[Product::Sum::LANE_ROWS];
  for (int i = 0; i < Product::Sum::LANE_ROWS; i++) {
    factors[i] = d[head];
  }
  const size_t own = product.row * X_STRIDE + in_x;
  add_rows(sum, x + own, X_STRIDE, product.rows, factors, product.lane);
  store(sum, y + own, X_STRIDE, product.rows, product.lane);
}
