// Convolution of each channel with its own kernel, with zeros beyond the ends.
//
//   y[c, i] = Σ_{j < K} w[c, j] · x[c, i + j − ⌊K/2⌋]
//
// A threadgroup loads its range of x and a halo of K − 1 elements once. Every thread then reads K elements from
// threadgroup memory.
//
// Launch: threadgroups of up to 128 threads in x over the length, with a partial last one; channels in y. K ≤ 33.

#include <metal_stdlib>
using namespace metal;

template <typename T, int K>
[[kernel]] void conv1d(
    device const T* x [[buffer(0)]],
    device const T* w [[buffer(1)]],
    constant int& length_of_row [[buffer(2)]],
    device T* y [[buffer(3)]],
    uint2 at [[thread_position_in_grid]],
    uint2 in_group [[thread_position_in_threadgroup]],
    uint2 group [[threadgroup_position_in_grid]],
    uint2 size [[threads_per_threadgroup]],
    uint2 full_size [[dispatch_threads_per_threadgroup]]) {
  threadgroup float stretch[128 + 32];
  const int first = int(group.x * full_size.x) - K / 2;
  device const T* row = x + ulong(at.y) * uint(length_of_row);
  for (int e = int(in_group.x); e < int(size.x) + K - 1; e += int(size.x)) {
    const int i = first + e;
    stretch[e] = i >= 0 && i < length_of_row ? float(row[i]) : 0.0f;
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  float sum = 0;
  for (int j = 0; j < K; j++) {
    sum += float(w[at.y * K + uint(j)]) * stretch[int(in_group.x) + j];
  }
  y[ulong(at.y) * uint(length_of_row) + at.x] = T(sum);
}
