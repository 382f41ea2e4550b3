// Sums of pairs at a distance of half a simdgroup. The last threadgroup of a grid of 40 threads has eight lanes,
// whose partners do not exist.
//
// launch: shuffle_in_short_simdgroup_bug shuffle_in_short_simdgroup_fixed
//   with: grid=40 threadgroup=32 x=float32[40] y=out:float32[40]
#include <metal_stdlib>
using namespace metal;

kernel void shuffle_in_short_simdgroup_bug(
    device const float* x [[buffer(0)]],
    device float* y [[buffer(1)]],
    uint i [[thread_position_in_grid]]) {
  y[i] = x[i] + simd_shuffle_xor(x[i], 16);  // want: shuffle-inactive
}

// A lane without a partner reads its own value.
kernel void shuffle_in_short_simdgroup_fixed(
    device const float* x [[buffer(0)]],
    device float* y [[buffer(1)]],
    uint i [[thread_position_in_grid]],
    uint n [[threads_per_grid]],
    uint lane [[thread_index_in_simdgroup]]) {
  const bool exists = (i ^ 16) < n;
  const float other = simd_shuffle(x[i], ushort(exists ? lane ^ 16 : lane));
  y[i] = x[i] + (exists ? other : 0.0f);
}
