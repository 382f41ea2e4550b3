// The formulas and statistics of layer_norm_backward.metal, for vectors of VEC elements.

#include "row_stream.h"

// A thread's sums over its elements of a row. Element k of a vector is added to accumulator k mod ACCUMULATORS. VEC
// accumulators suit the vector registers of a CPU. If the thread has only one vector, each then holds one element, as
// its shift. One accumulator takes the fewest registers.
template <int ACCUMULATORS>
struct Moments {
  float shift[ACCUMULATORS];     // first x of the sum, later the mean of its elements
  float sum[ACCUMULATORS];       // Σ (x − shift)
  float squares[ACCUMULATORS];   // Σ (x − shift)²
  float g[ACCUMULATORS];         // Σ g
  float products[ACCUMULATORS];  // Σ g·(x − shift)
};

// Moves the shift of accumulator l, which has n elements, to `shift`.
template <int ACCUMULATORS>
inline void move_shift(int l, float n, float shift, thread Moments<ACCUMULATORS>& moments) {
  const float by = moments.shift[l] - shift;
  const float sum = fma(n, by, moments.sum[l]);
  // Infinite squares must not become NaN. fma does not round the product, so it cannot overflow to −∞ on its own.
  moments.squares[l] = fma(by, moments.sum[l] + sum, moments.squares[l]);
  moments.products[l] += by * moments.g[l];
  moments.sum[l] = sum;
  moments.shift[l] = shift;
}

// Adds vector v of a thread to the moments. Its first `count` elements are in the row. Only the thread's last vector
// may have a count below VEC. When the number of vectors has doubled, the shifts move to the means.
template <int VEC, int ACCUMULATORS>
inline void add_to_moments(
    uint v, thread const float* x, thread const float* g, size_t count, thread Moments<ACCUMULATORS>& moments) {
  if (v == 0) {
    for (int l = 0; l < ACCUMULATORS; l++) {
      moments.shift[l] = x[l];
      moments.sum[l] = 0;
      moments.squares[l] = 0;
      moments.g[l] = g[l];
      moments.products[l] = 0;
    }
    if (ACCUMULATORS == VEC) {
      return;
    }
  } else if ((v & (v - 1)) == 0 && (v > 1 || ACCUMULATORS < VEC)) {
    const float n = float(v) * (VEC / ACCUMULATORS);
    for (int l = 0; l < ACCUMULATORS; l++) {
      move_shift<ACCUMULATORS>(l, n, moments.shift[l] + moments.sum[l] / n, moments);
    }
  }
  for (int k = v == 0 ? ACCUMULATORS : 0; k < VEC; k++) {
    const int l = k % ACCUMULATORS;
    const float difference = x[k] - moments.shift[l];
    const float d = size_t(k) < count ? difference : 0.0f;
    moments.sum[l] += d;
    moments.squares[l] += d * d;
    moments.g[l] += g[k];
    moments.products[l] += g[k] * d;
  }
}

// The statistics of a row: μ, r, mean(g) and c of layer_norm_backward.metal.
struct RowStatistics {
  float mean;
  float r;
  float mean_g;
  float c;
};

// Loads the statistics of row `row`, or zeros at and beyond row `rows`, as a vector that lanes can exchange.
inline float4 load_row_statistics(device const float* statistics, size_t row, uint rows) {
  if (row >= rows) {
    return float4(0);
  }
  device const float* in = statistics + 4 * row;
  return float4(in[0], in[1], in[2], in[3]);
}

// Stores the statistics of row `row`.
inline void store_row_statistics(RowStatistics values, device float* statistics, size_t row) {
  device float* out = statistics + 4 * row;
  out[0] = values.mean;
  out[1] = values.r;
  out[2] = values.mean_g;
  out[3] = values.c;
}

// The number of elements in each of a thread's accumulators, and the reciprocal of the number of elements in a row.
// They are the same for all rows, so each thread computes them once.
template <int ACCUMULATORS>
struct Counts {
  float n[ACCUMULATORS];
  float inverse_width;
};

// Returns the counts of a thread whose vectors begin at columns first, first + stride, …
template <int VEC, int ACCUMULATORS>
inline Counts<ACCUMULATORS> count_elements(size_t first, size_t stride, uint width) {
  // The thread has `whole` whole vectors, and `tail` elements of one more.
  const size_t left = first < width ? width - first : 0;
  const size_t rest = left % stride;
  const size_t whole = left / stride + (rest >= size_t(VEC) ? 1 : 0);
  const size_t tail = rest < size_t(VEC) ? rest : 0;
  Counts<ACCUMULATORS> counts;
  for (int l = 0; l < ACCUMULATORS; l++) {
    counts.n[l] = float(ACCUMULATORS == VEC ? whole + (size_t(l) < tail ? 1 : 0) : whole * VEC + tail);
  }
  counts.inverse_width = 1.0f / float(width);
  return counts;
}

// Returns the statistics of a row from the moments of all threads.
template <int ACCUMULATORS>
inline RowStatistics row_statistics(
    thread Moments<ACCUMULATORS>& moments,
    Counts<ACCUMULATORS> counts,
    float eps,
    threadgroup float2* scratch2,
    threadgroup float3* scratch3,
    uint lane,
    uint simdgroup,
    uint simdgroups) {
  float2 sums = float2(0);  // Σ x, Σ g
  for (int l = 0; l < ACCUMULATORS; l++) {
    sums.x += fma(counts.n[l], moments.shift[l], moments.sum[l]);
    sums.y += moments.g[l];
  }
  sums = threadgroup_sum(sums, scratch2, lane, simdgroup, simdgroups);
  const float mean = sums.x * counts.inverse_width;

  float3 central = float3(0);  // Σ (x − mean), Σ (x − mean)², Σ g·(x − mean)
  for (int l = 0; l < ACCUMULATORS; l++) {
    move_shift<ACCUMULATORS>(l, counts.n[l], mean, moments);
    central.x += moments.sum[l];
    central.y += moments.squares[l];
    central.z += moments.products[l];
  }
  central = threadgroup_sum(central, scratch3, lane, simdgroup, simdgroups);

  // If Σ x is large, its rounding makes the mean inexact. Σ (x − mean) is small and corrects the mean.
  const float error = central.x * counts.inverse_width;
  const float squares = fma(-central.x, error, central.y);
  const float variance = max(squares, 0.0f) * counts.inverse_width + eps;
  RowStatistics row;
  row.mean = mean + error;
  row.r = rsqrt(variance);
  row.mean_g = sums.y * counts.inverse_width;
  // Computed without r, so r's rounding does not affect it.
  row.c = (central.z - sums.y * error) * counts.inverse_width / variance;
  return row;
}

// Subtracts the mean from a vector of x.
template <int VEC>
inline void center(thread float* x, float mean) {
  for (int k = 0; k < VEC; k++) {
    x[k] -= mean;
  }
}

// Computes dx from x − mean. The difference may cancel, so fma keeps the product unrounded.
template <int VEC>
inline void input_gradient(thread const float* centered, thread const float* g, RowStatistics row, thread float* dx) {
  for (int k = 0; k < VEC; k++) {
    dx[k] = row.r * fma(-centered[k], row.c, g[k] - row.mean_g);
  }
}

// Adds a row's terms to dw and db, from x − mean.
template <int VEC, bool HAS_WEIGHT, bool HAS_BIAS>
inline void add_parameter_gradients(
    thread const float* centered, thread const float* dy, float r, thread float* dw, thread float* db) {
  for (int k = 0; k < VEC; k++) {
    if (HAS_WEIGHT) {
      dw[k] += dy[k] * (centered[k] * r);
    }
    if (HAS_BIAS) {
      db[k] += dy[k];
    }
  }
}

// Stores a group's partial sums of dw and db. partial is [matrices, groups, width]: a matrix for dw if there is a
// weight, then a matrix for db if there is a bias.
template <int VECS_PER_THREAD, bool HAS_WEIGHT, bool HAS_BIAS, int VEC, typename PARTIAL_T>
inline void store_partial(
    device PARTIAL_T* partial,
    uint group,
    uint groups,
    Columns<VEC> columns,
    bool is_aligned,
    thread const float (*dws)[VEC],
    thread const float (*dbs)[VEC]) {
  device PARTIAL_T* dw = partial + size_t(group) * columns.width;
  device PARTIAL_T* db = dw + (HAS_WEIGHT ? size_t(groups) * columns.width : 0);
  for (int v = 0; v < VECS_PER_THREAD && columns.contain(v); v++) {
    if (HAS_WEIGHT) {
      store_vec<VEC>(dw, columns.at(v), columns.width, is_aligned, dws[v]);
    }
    if (HAS_BIAS) {
      store_vec<VEC>(db, columns.at(v), columns.width, is_aligned, dbs[v]);
    }
  }
}
