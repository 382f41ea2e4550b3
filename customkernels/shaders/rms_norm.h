// The formulas of rms_norm_backward.metal, for vectors of VEC elements.

#include "row_stream.h"

// Adds to Σ x² and Σ g·x. Element k is added to accumulator k mod ACCUMULATORS.
template <int VEC, int ACCUMULATORS = VEC>
inline void add_to_sums(thread const float* x, thread const float* g, thread float* squares, thread float* products) {
  for (int k = 0; k < VEC; k++) {
    squares[k % ACCUMULATORS] += x[k] * x[k];
    products[k % ACCUMULATORS] += g[k] * x[k];
  }
}

// Returns (r, c) of a row from (Σ x², Σ g·x). c is computed without r, so r's rounding does not affect it.
inline float2 row_statistics(float2 sums, float inverse_width, float eps) {
  const float mean_square = sums.x * inverse_width + eps;
  return float2(rsqrt(mean_square), sums.y * inverse_width / mean_square);
}

// Computes dx. The difference may cancel, so fma keeps the product unrounded.
template <int VEC>
inline void input_gradient(thread const float* x, thread const float* g, float r, float c, thread float* dx) {
  for (int k = 0; k < VEC; k++) {
    dx[k] = r * fma(-x[k], c, g[k]);
  }
}

// Adds a row's terms to dw.
template <int VEC>
inline void add_weight_gradient(thread const float* x, thread const float* dy, float r, thread float* dw) {
  for (int k = 0; k < VEC; k++) {
    dw[k] += dy[k] * (x[k] * r);
  }
}
