// Rows of an embedding table by index. Negative indices count from the end.
//
//   y[n, d] = table[index[n] < 0 ? index[n] + rows : index[n], d]
//
// Launch: one thread per element; grid (D, n).

#include <metal_stdlib>
using namespace metal;

template <typename T, typename I>
[[kernel]] void gather_rows(
    device const T* table [[buffer(0)]],
    device const I* index [[buffer(1)]],
    constant uint& rows [[buffer(2)]],
    device T* y [[buffer(3)]],
    uint2 at [[thread_position_in_grid]],
    uint2 size [[threads_per_grid]]) {
  const I n = index[at.y];
  const ulong row = n < 0 ? ulong(n + I(rows)) : ulong(n);
  y[ulong(at.y) * size.x + at.x] = table[row * size.x + at.x];
}
