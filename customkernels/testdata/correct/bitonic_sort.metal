// Sorts each row in ascending order with Batcher's bitonic network, and returns the original index of each element.
//
//   y[r, i] = x[r, from[r, i]],   y[r, 0] ≤ y[r, 1] ≤ …
//
// Equal keys are ordered by their index, so the sort is stable. Rows are padded to N elements with keys greater than
// all others. Each stage compares N/2 disjoint pairs. A barrier separates the stages.
//
// Launch: one threadgroup per row, up to N/2 threads, N a power of two ≥ width; grid (threads, rows).

#include <metal_stdlib>
using namespace metal;

template <typename T, int N>
[[kernel]] void bitonic_sort(
    device const T* x [[buffer(0)]],
    constant int& width [[buffer(1)]],
    device T* y [[buffer(2)]],
    device uint* from [[buffer(3)]],
    uint2 group [[threadgroup_position_in_grid]],
    uint lid [[thread_index_in_threadgroup]],
    uint2 size [[threads_per_threadgroup]]) {
  threadgroup T key[N];
  threadgroup uint place[N];
  const ulong row = ulong(group.y) * uint(width);
  for (int i = int(lid); i < N; i += int(size.x)) {
    if (i < width) {
      key[i] = x[row + uint(i)];
    } else {
      key[i] = T(0); // never compared: its place says that it is a filler
    }
    place[i] = uint(i);
  }
  for (int sorted = 2; sorted <= N; sorted *= 2) {
    for (int distance = sorted / 2; distance > 0; distance /= 2) {
      threadgroup_barrier(mem_flags::mem_threadgroup);
      for (int pair = int(lid); pair < N / 2; pair += int(size.x)) {
        const int low = pair / distance * 2 * distance + pair % distance;
        const int high = low + distance;
        const T a = key[low], b = key[high];
        const uint pa = place[low], pb = place[high];
        const bool a_fills = pa >= uint(width), b_fills = pb >= uint(width);
        const bool greater =
            a_fills || b_fills ? pa > pb : a > b || (a == b && pa > pb);
        const bool rising = (low & sorted) == 0;
        if (greater == rising) {
          key[low] = b;
          key[high] = a;
          place[low] = pb;
          place[high] = pa;
        }
      }
    }
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (int i = int(lid); i < width; i += int(size.x)) {
    y[row + uint(i)] = key[i];
    from[row + uint(i)] = place[i];
  }
}
