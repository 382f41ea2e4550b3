#include <metal_stdlib>
using namespace metal;

template <typename T>
[[kernel]] void silu(device const T* x [[buffer(0)]], device T* y [[buffer(1)]],
                     uint i [[thread_position_in_grid]]) {
  float v = x[i];
  y[i] = T(v / (1 + exp(-v)));
}

template <typename T>
[[kernel]] void silu_backward(device const T* x [[buffer(0)]], device const T* dy [[buffer(1)]],
                              device T* dx [[buffer(2)]], uint i [[thread_position_in_grid]]) {
  float v = x[i];
  float s = 1 / (1 + exp(-v));
  dx[i] = T(float(dy[i]) * s * (1 + v * (1 - s)));
}
