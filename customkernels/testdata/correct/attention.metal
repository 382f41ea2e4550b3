// Scaled dot-product attention with online softmax, one simdgroup per query row.
//
//   o_i = Σ_j p_ij · v_j,   p_ij = exp(scale · q_i·k_j − m_i) / s_i
//
// over all keys j, or with a causal mask over the keys j ≤ i + (keys − queries). The simdgroup iterates over the keys
// once and keeps the running maximum m, the sum s and the accumulator o. When m grows by d, s and o are scaled by
// e^−d. Each lane holds D/32 columns.
//
// Launch: threadgroups of whole simdgroups; grid 32·queries threads in x, heads in y.
// D is a multiple of 32.

#include <metal_stdlib>
using namespace metal;

template <typename T, int D, bool causal>
[[kernel]] void attention(
    device const T* q [[buffer(0)]],
    device const T* k [[buffer(1)]],
    device const T* v [[buffer(2)]],
    constant float& scale [[buffer(3)]],
    constant int& keys [[buffer(4)]],
    device T* o [[buffer(5)]],
    uint2 at [[thread_position_in_grid]],
    uint2 grid [[threads_per_grid]],
    uint lane [[thread_index_in_simdgroup]]) {
  constexpr int columns = D / 32;
  const int queries = int(grid.x) / 32;
  const int query = int(at.x) / 32;
  const int head = int(at.y);
  float q_part[columns], o_part[columns];
  for (int c = 0; c < columns; c++) {
    q_part[c] = scale * float(q[(head * queries + query) * D + int(lane) * columns + c]);
    o_part[c] = 0;
  }
  float m = -INFINITY, s = 0;
  const int last = causal ? query + keys - queries : keys - 1;
  for (int j = 0; j <= last; j++) {
    device const T* k_row = k + (head * keys + j) * D + int(lane) * columns;
    device const T* v_row = v + (head * keys + j) * D + int(lane) * columns;
    float score = 0;
    for (int c = 0; c < columns; c++) {
      score += q_part[c] * float(k_row[c]);
    }
    score = simd_sum(score);
    const float new_m = max(m, score);
    const float shrink = exp(m - new_m);
    const float p = exp(score - new_m);
    m = new_m;
    s = s * shrink + p;
    for (int c = 0; c < columns; c++) {
      o_part[c] = o_part[c] * shrink + p * float(v_row[c]);
    }
  }
  for (int c = 0; c < columns; c++) {
    o[(head * queries + query) * D + int(lane) * columns + c] = T(s > 0 ? o_part[c] / s : 0.0f);
  }
}
