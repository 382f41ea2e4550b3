// The gated linear unit with GELU, four elements per thread.
//
//   y[i] = gelu(x[i, 0]) · x[i, 1],
//   gelu(a) = a/2 · (1 + tanh(√(2/π) · (a + 0.044715·a³)))
//
// The two elements of a pair are adjacent. A thread reads four pairs as two vectors and separates gates from values by
// swizzles. The last thread processes its remainder one by one.
//
// Launch: ⌈size/4⌉ threads, size the number of pairs; x begins at a multiple of 4 elements.

#include <metal_stdlib>
using namespace metal;

template <typename V>
inline V gelu(V a) {
  return 0.5f * a * (1.0f + precise::tanh(0.7978845608f * (a + 0.044715f * a * a * a)));
}

template <typename T>
[[kernel]] void geglu(
    device const T* x [[buffer(0)]],
    constant uint& size [[buffer(1)]],
    device T* y [[buffer(2)]],
    uint i [[thread_position_in_grid]]) {
  const uint first = 4 * i;
  if (first + 4 <= size) {
    device const vec<T, 4>* wide = reinterpret_cast<device const vec<T, 4>*>(x) + 2 * i;
    const float4 low = float4(wide[0]);
    const float4 high = float4(wide[1]);
    float4 gate, value;
    gate.xy = low.xz;
    gate.zw = high.xz;
    value.xy = low.yw;
    value.zw = high.yw;
    const vec<T, 4> result = vec<T, 4>(gelu(gate) * value);
    for (uint e = 0; e < 4; e++) {
      y[first + e] = result[e];
    }
  } else {
    for (uint e = first; e < size; e++) {
      y[e] = T(gelu(float(x[2 * e])) * float(x[2 * e + 1]));
    }
  }
}
