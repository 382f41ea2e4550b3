// C[b] = A[b] · B[b] through tiles in threadgroup memory, one thread per element of C.
//
//   C[b, i, j] = Σ_k A[b, i, k] · B[b, k, j]
//
// Launch: threadgroups of 16×16 threads that cover at least N×M in x and y, b in z. Threads beyond the edges help to
// load and store nothing.

#include <metal_stdlib>
using namespace metal;

#define TILE 16

template <typename T>
[[kernel]] void tiled_matmul(
    device const T* A [[buffer(0)]],
    device const T* B [[buffer(1)]],
    constant uint& M [[buffer(2)]],
    constant uint& N [[buffer(3)]],
    constant uint& K [[buffer(4)]],
    device T* C [[buffer(5)]],
    uint3 at [[thread_position_in_grid]],
    ushort3 in_group [[thread_position_in_threadgroup]]) {
  threadgroup float a_tile[TILE][TILE];
  threadgroup float b_tile[TILE][TILE + 1];
  const ushort tx = in_group.x, ty = in_group.y;
  device const T* a = A + ulong(at.z) * M * K;
  device const T* b = B + ulong(at.z) * K * N;
  float sum = 0;
  for (uint k0 = 0; k0 < K; k0 += TILE) {
    a_tile[ty][tx] = at.y < M && k0 + tx < K ? float(a[at.y * K + k0 + tx]) : 0;
    b_tile[ty][tx] = k0 + ty < K && at.x < N ? float(b[(k0 + ty) * N + at.x]) : 0;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (ushort k = 0; k < TILE; ++k) {
      sum = fma(a_tile[ty][k], b_tile[k][tx], sum);
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
  if (at.x < N && at.y < M) {
    C[(ulong(at.z) * M + at.y) * N + at.x] = T(sum);
  }
}
