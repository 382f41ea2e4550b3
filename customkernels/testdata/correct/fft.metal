// Discrete Fourier transform of each row, N a power of two, by Stockham's method.
//
//   y[r, k] = Σ_n x[r, n] · e^(−2πi·kn/N)
//
// Every pass combines transforms of length s to length 2s, from one half of the slots to the other. So there is no bit
// reversal, and one barrier per pass suffices.
//
// Launch: one threadgroup of N/2 threads per row; grid (N/2, rows).

#include <metal_stdlib>
using namespace metal;

inline float2 times(float2 a, float2 b) {
  return float2(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x);
}

template <int N>
[[kernel]] void fft(
    device const float2* x [[buffer(0)]],
    device float2* y [[buffer(1)]],
    uint2 at [[thread_position_in_grid]]) {
  threadgroup float2 slots[2][N];
  const uint t = at.x;
  const ulong row = ulong(at.y) * N;
  slots[0][t] = x[row + t];
  slots[0][t + N / 2] = x[row + t + N / 2];
  uint from = 0;
  for (uint s = 1; s < uint(N); s *= 2) {
    threadgroup_barrier(mem_flags::mem_threadgroup);
    const uint k = t % s;
    const float2 a = slots[from][t];
    const float angle = -M_PI_F * float(k) / float(s);
    const float2 b = times(slots[from][t + N / 2], float2(cos(angle), sin(angle)));
    const uint to = (t - k) * 2 + k;
    slots[from ^ 1][to] = a + b;
    slots[from ^ 1][to + s] = a - b;
    from ^= 1;
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  y[row + t] = slots[from][t];
  y[row + t + N / 2] = slots[from][t + N / 2];
}
