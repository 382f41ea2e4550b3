// Helpers whose parameters are pointers and references into each address space.
//
// Mean and variance of each row by Welford's update, merged over the threads by Chan's formula:
//
//   n = n_a + n_b,   δ = μ_b − μ_a
//   μ = μ_a + δ·n_b/n,   M = M_a + M_b + δ²·n_a·n_b/n
//
// out[r] = (μ, M/n). A tree over any number of threads merges their results.
//
// Launch: one threadgroup per row, of up to 128 threads; grid (threads, rows).

#include <metal_stdlib>
using namespace metal;

struct moments {
  float n;
  float mean;
  float m2;
};

inline void add(thread moments& a, float x) {
  a.n += 1;
  const float delta = x - a.mean;
  a.mean += delta / a.n;
  a.m2 += delta * (x - a.mean);
}

inline void join(threadgroup moments& a, const threadgroup moments& b) {
  const float n = a.n + b.n;
  if (n == 0) {
    return;
  }
  const float delta = b.mean - a.mean;
  a.mean += delta * b.n / n;
  a.m2 += b.m2 + delta * delta * a.n * b.n / n;
  a.n = n;
}

template <typename T>
inline void add_all(
    thread moments* a,
    const device T* x,
    constant const uint& width,
    uint first,
    uint step) {
  for (uint i = first; i < width; i += step) {
    add(*a, float(x[i]));
  }
}

template <typename T>
inline void finish(device T* out, const threadgroup moments* a) {
  out[0] = T(a->mean);
  out[1] = T(a->m2 / a->n);
}

template <typename T>
[[kernel]] void row_moments(
    device const T* x [[buffer(0)]],
    constant uint& width [[buffer(1)]],
    device T* out [[buffer(2)]],
    uint2 group [[threadgroup_position_in_grid]],
    uint lid [[thread_index_in_threadgroup]],
    uint2 size [[threads_per_threadgroup]]) {
  threadgroup moments slots[128];
  moments mine = {0, 0, 0};
  add_all(&mine, x + ulong(group.y) * width, width, lid, size.x);
  slots[lid] = mine;
  uint count = size.x;
  while (count > 1) {
    threadgroup_barrier(mem_flags::mem_threadgroup);
    const uint rest = (count + 1) / 2;
    if (lid + rest < count) {
      join(slots[lid], slots[lid + rest]);
    }
    count = rest;
  }
  if (lid == 0) {
    finish(out + 2 * group.y, slots);
  }
}
