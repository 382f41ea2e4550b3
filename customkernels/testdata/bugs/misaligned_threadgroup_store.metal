// Widens halves in pairs, through threadgroup rows with an odd number of elements. Every second row begins in the
// middle of a half2.
//
// launch: misaligned_threadgroup_store_bug misaligned_threadgroup_store_fixed
//   with: grid=64 threadgroup=64 x=float16[4,32] y=out:float16[4,32]
#include <metal_stdlib>
using namespace metal;

template <int stride>
inline void through(device const half* x, device half* y, threadgroup half* rows, uint i) {
  const uint row = i / 16, pair = i % 16;
  const half2 v = half2(x[32 * row + 2 * pair], x[32 * row + 2 * pair + 1]);
  *reinterpret_cast<threadgroup half2*>(rows + stride * row + 2 * pair) = v;  // want: misaligned
  threadgroup_barrier(mem_flags::mem_threadgroup);
  y[i] = rows[stride * (i / 32) + i % 32];
  y[i + 64] = rows[stride * (i / 32 + 2) + i % 32];
}

kernel void misaligned_threadgroup_store_bug(
    device const half* x [[buffer(0)]],
    device half* y [[buffer(1)]],
    uint i [[thread_position_in_threadgroup]]) {
  threadgroup half rows[4 * 34];
  through<33>(x, y, rows, i);  // path: misaligned
}

kernel void misaligned_threadgroup_store_fixed(
    device const half* x [[buffer(0)]],
    device half* y [[buffer(1)]],
    uint i [[thread_position_in_threadgroup]]) {
  threadgroup half rows[4 * 34];
  through<34>(x, y, rows, i);
}
