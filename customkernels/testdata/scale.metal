#include <metal_stdlib>
using namespace metal;

// y = x · factor, one thread per element.
template <typename T>
[[kernel]] void scale(
    device const T* x [[buffer(0)]],
    constant float& factor [[buffer(1)]],
    device T* y [[buffer(2)]],
    uint i [[thread_position_in_grid]]) {
  y[i] = T(float(x[i]) * factor);
}

// Two outputs in f32 and i32 from a plain function, with a table of four values.
kernel void lookup(
    device const uint* index [[buffer(0)]],
    constant float* table [[buffer(1)]],
    device float* value [[buffer(2)]],
    device int* twice [[buffer(3)]],
    uint i [[thread_position_in_grid]]) {
  value[i] = table[index[i]];
  twice[i] = int(2 * index[i]);
}

// Counts in place, so the output has an initial value.
kernel void accumulate(
    device const float* x [[buffer(0)]],
    device float* y [[buffer(1)]],
    uint i [[thread_position_in_grid]]) {
  y[i] += x[i];
}
