// One simdgroup writes 16-bit elements, the other single bytes that were meant to lie between them. Each byte
// overlaps an element.
//
// launch: mixed_sizes_overlap_bug mixed_sizes_overlap_fixed
//   with: grid=64 threadgroup=64 x=uint8[64]:1..200 y=out:uint8[128]
#include <metal_stdlib>
using namespace metal;

kernel void mixed_sizes_overlap_bug(
    device const uchar* x [[buffer(0)]],
    device uchar* y [[buffer(1)]],
    uint i [[thread_position_in_threadgroup]]) {
  if (i < 32) {
    reinterpret_cast<device ushort*>(y)[i] = ushort(x[i]) * 257;  // also: race
  } else {
    y[2 * (i - 32) + 1] = x[i] + 1;  // want: race
  }
}

kernel void mixed_sizes_overlap_fixed(
    device const uchar* x [[buffer(0)]],
    device uchar* y [[buffer(1)]],
    uint i [[thread_position_in_threadgroup]]) {
  reinterpret_cast<device ushort*>(y)[i] = ushort(x[i]) * 257;
}
