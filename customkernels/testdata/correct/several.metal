// Several kernels that share helpers: the steps of the conjugate gradient method for A·x = b, where A is the symmetric
// tridiagonal matrix (−1, 2 + shift, −1).

#include <metal_stdlib>
using namespace metal;

namespace tridiagonal {

// Row i of A times v.
inline float row(device const float* v, uint i, uint size, float shift) {
  const float left = i > 0 ? v[i - 1] : 0.0f;
  const float right = i + 1 < size ? v[i + 1] : 0.0f;
  return (2 + shift) * v[i] - left - right;
}

} // namespace tridiagonal

// Sum over one threadgroup, in a fixed order, for every thread.
static float sum_of_group(float v, threadgroup float* slots, uint lid, uint threads) {
  slots[lid] = v;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  float sum = 0;
  for (uint i = 0; i < threads; i++) {
    sum += slots[i];
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  return sum;
}

// q = A·p and pq = p·q. Launch: one threadgroup of up to 64 threads.
kernel void apply_matrix(
    device const float* p [[buffer(0)]],
    constant float& shift [[buffer(1)]],
    constant uint& size [[buffer(2)]],
    device float* q [[buffer(3)]],
    device float* pq [[buffer(4)]],
    uint lid [[thread_index_in_threadgroup]],
    uint threads [[threads_per_threadgroup]]) {
  threadgroup float slots[64];
  float sum = 0;
  for (uint i = lid; i < size; i += threads) {
    const float v = tridiagonal::row(p, i, size, shift);
    q[i] = v;
    sum += p[i] * v;
  }
  sum = sum_of_group(sum, slots, lid, threads);
  if (lid == 0) {
    *pq = sum;
  }
}

// y = x + a·v. Launch: one thread per element.
kernel void add_scaled(
    device const float* x [[buffer(0)]],
    device const float* v [[buffer(1)]],
    constant float& a [[buffer(2)]],
    device float* y [[buffer(3)]],
    uint i [[thread_position_in_grid]]) {
  y[i] = fma(a, v[i], x[i]);
}

// rr = r·r. Launch: one threadgroup of up to 64 threads.
[[kernel]] void square_norm(
    device const float* r [[buffer(0)]],
    constant uint& size [[buffer(1)]],
    device float& rr [[buffer(2)]],
    uint lid [[thread_index_in_threadgroup]],
    uint threads [[threads_per_threadgroup]]) {
  threadgroup float slots[64];
  float sum = 0;
  for (uint i = lid; i < size; i += threads) {
    sum += r[i] * r[i];
  }
  sum = sum_of_group(sum, slots, lid, threads);
  if (lid == 0) {
    rr = sum;
  }
}
