// The output of the RMS norm, for vectors of VEC elements.

#include "rows.h"

// Computes x·r·w.
template <int VEC, bool HAS_WEIGHT>
inline void normalize(thread const float* x, float r, thread const float* w, thread float* y) {
  for (int k = 0; k < VEC; k++) {
    y[k] = HAS_WEIGHT ? x[k] * r * w[k] : x[k] * r;
  }
}

// Stores h·r·w of the vector at `column`.
template <bool HAS_WEIGHT, int VEC, typename T>
inline void store_normalized(
    device T* y, size_t column, Columns<VEC> columns, thread const float* h, float r, thread const float* w) {
  float ys[VEC];
  normalize<VEC, HAS_WEIGHT>(h, r, w, ys);
  columns.store(y, column, ys);
}
