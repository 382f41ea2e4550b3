// Products of matrices on 8×8 fragments.
//
//   C[M, N] = A[M, K] · B[K, N]     (simdgroup_matmul, any M, N, K)
//   C[M, N] = A[M, K] · B[N, K]ᵀ    (simdgroup_matmul_nt, multiples of 8, M and N of 16)
//
// Sums are in float. In simdgroup_matmul a threadgroup of four simdgroups computes a tile of 32×32, each simdgroup 2×2
// fragments. Tiles of A and B with a depth of 16 are loaded to threadgroup memory and padded with zeros. The result
// is stored through threadgroup memory too, so that elements beyond the edges are not written.
//
// Launch: threadgroups of 128 threads (32 for _nt), one for each tile of 32×32 (16×16).

#include <metal_stdlib>
#include <metal_simdgroup_matrix>
using namespace metal;

constant constexpr int tile = 32;
constant constexpr int depth = 16;
constant constexpr int fragments = 2;

template <typename T>
[[kernel]] void simdgroup_matmul(
    device const T* A [[buffer(0)]],
    device const T* B [[buffer(1)]],
    constant int& M [[buffer(2)]],
    constant int& N [[buffer(3)]],
    constant int& K [[buffer(4)]],
    device T* C [[buffer(5)]],
    uint3 group [[threadgroup_position_in_grid]],
    uint lid [[thread_index_in_threadgroup]],
    uint simdgroup_id [[simdgroup_index_in_threadgroup]]) {
  threadgroup T As[tile * depth];
  threadgroup T Bs[depth * tile];
  threadgroup float Cs[tile * tile];
  const int row0 = int(group.y) * tile;
  const int column0 = int(group.x) * tile;
  // This simdgroup's quarter of the tile.
  const int row = int(simdgroup_id / 2) * 16;
  const int column = int(simdgroup_id % 2) * 16;

  simdgroup_matrix<float, 8, 8> sum[fragments][fragments];
  for (int i = 0; i < fragments; i++) {
    for (int j = 0; j < fragments; j++) {
      sum[i][j] = simdgroup_matrix<float, 8, 8>(0);
    }
  }
  for (int k0 = 0; k0 < K; k0 += depth) {
    for (int e = int(lid); e < tile * depth; e += 128) {
      const int r = row0 + e / depth;
      const int k = k0 + e % depth;
      As[e] = r < M && k < K ? A[r * K + k] : T(0);
    }
    for (int e = int(lid); e < depth * tile; e += 128) {
      const int k = k0 + e / tile;
      const int c = column0 + e % tile;
      Bs[e] = k < K && c < N ? B[k * N + c] : T(0);
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (int k = 0; k < depth; k += 8) {
      simdgroup_matrix<T, 8, 8> a[fragments];
      simdgroup_matrix<T, 8, 8> b[fragments];
      for (int i = 0; i < fragments; i++) {
        simdgroup_load(a[i], &As[(row + 8 * i) * depth + k], depth);
        simdgroup_load(b[i], &Bs[k * tile + column + 8 * i], tile);
      }
      for (int i = 0; i < fragments; i++) {
        for (int j = 0; j < fragments; j++) {
          simdgroup_multiply_accumulate(sum[i][j], a[i], b[j], sum[i][j]);
        }
      }
    }
    // The next tiles overwrite the memory of this iteration's fragments.
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
  for (int i = 0; i < fragments; i++) {
    for (int j = 0; j < fragments; j++) {
      simdgroup_store(sum[i][j], &Cs[(row + 8 * i) * tile + column + 8 * j], tile);
    }
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (int e = int(lid); e < tile * tile; e += 128) {
    const int r = row0 + e / tile;
    const int c = column0 + e % tile;
    if (r < M && c < N) {
      C[r * N + c] = T(Cs[e]);
    }
  }
}

// Loads fragments from device memory, those of B transposed. Each lane rounds its own two elements of a fragment.
template <typename T>
[[kernel]] void simdgroup_matmul_nt(
    device const T* A [[buffer(0)]],
    device const T* B [[buffer(1)]],
    constant int& N [[buffer(2)]],
    constant int& K [[buffer(3)]],
    device T* C [[buffer(4)]],
    uint2 group [[threadgroup_position_in_grid]]) {
  const int row = int(group.y) * 16;
  const int column = int(group.x) * 16;
  simdgroup_float8x8 sum[2][2];
  for (int i = 0; i < 2; i++) {
    for (int j = 0; j < 2; j++) {
      sum[i][j] = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
    }
  }
  for (int k = 0; k < K; k += 8) {
    simdgroup_matrix<T, 8, 8> a[2], b[2];
    for (int i = 0; i < 2; i++) {
      simdgroup_load(a[i], A + (row + 8 * i) * K + k, ulong(K));
      simdgroup_load(b[i], B, ulong(K), ulong2(k, column + 8 * i), true);
    }
    for (int i = 0; i < 2; i++) {
      for (int j = 0; j < 2; j++) {
        simdgroup_multiply_accumulate(sum[i][j], a[i], b[j], sum[i][j]);
      }
    }
  }
  for (int i = 0; i < 2; i++) {
    for (int j = 0; j < 2; j++) {
      simdgroup_matrix<T, 8, 8> rounded;
      rounded.thread_elements()[0] = T(sum[i][j].thread_elements()[0]);
      rounded.thread_elements()[1] = T(sum[i][j].thread_elements()[1]);
      simdgroup_store(rounded, C + (row + 8 * i) * N + column + 8 * j, ulong(N));
    }
  }
}
