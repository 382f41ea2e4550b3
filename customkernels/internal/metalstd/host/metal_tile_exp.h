// Exponentials of tiles that are stored by columns, with AVX-512. Shaders use them if MLXG_TILE_EXPONENTIALS is
// defined.
//
// An exponential is a chain of dependent instructions. Compilers put the chains of several vectors one after the other,
// and a processor overlaps them only as far as it looks ahead. These functions advance four chains in turns. Assembly
// is volatile, so that compilers keep this order.
#ifndef METAL_TILE_EXP_H
#define METAL_TILE_EXP_H

#include "metal_exp.h"
#include "metal_tile.h"

#if defined(MLXG_THREAD_PRODUCTS) && defined(__AVX512F__) && defined(__AVX512VL__)
#define MLXG_TILE_EXPONENTIALS

namespace mlxg {

// Returns a·b + c.
template <int W>
MLXG_INLINE floats<W> multiply_add(floats<W> a, floats<W> b, floats<W> c) {
  __asm__ volatile("vfmadd213ps %2, %1, %0" : "+v"(a) : "v"(b), "v"(c));
  return a;
}

// Returns v·2^n, rounded once, or 0 where x is below low.
template <int W>
MLXG_INLINE floats<W> scale_or_zero(floats<W> v, floats<W> n, floats<W> x, floats<W> low) {
  uint16_t mask;
  __asm__ volatile("vcmpnltps %2, %1, %0" : "=Yk"(mask) : "v"(x), "v"(low));
  floats<W> result;
  __asm__ volatile("vscalefps %2, %1, %0%{%3%}%{z%}" : "=v"(result) : "v"(v), "v"(n), "Yk"(mask));
  return result;
}

// Replaces each x by e^x or, if BASE_2, by 2^x. For x up to 80 the results have the bits of exp1, or of fast_exp2_1.
template <bool BASE_2, int W>
MLXG_INLINE void exponentials(floats<W> (&x)[4]) {
  using namespace metal::detail;
  const auto all = [](float value) { return value - floats<W>{}; };
  floats<W> n[4], r[4], q[4], sum[4];
#define MLXG_EACH _Pragma("GCC unroll 4") for (int u = 0; u < 4; ++u)
  MLXG_EACH n[u] = BASE_2 ? x[u] + to_integer : multiply_add<W>(x[u], all(M_LOG2E_F), all(to_integer));
  MLXG_EACH n[u] -= to_integer;
  if (BASE_2) {
    MLXG_EACH r[u] = (x[u] - n[u]) * M_LN2_F;
  } else {
    MLXG_EACH r[u] = multiply_add<W>(n[u], all(-ln2_high), x[u]);
    MLXG_EACH r[u] = multiply_add<W>(n[u], all(-ln2_low), r[u]);
  }
  MLXG_EACH q[u] = multiply_add<W>(r[u], all(exp_terms[0]), all(exp_terms[1]));
  for (int term = 2; term < 5; ++term) {
    MLXG_EACH q[u] = multiply_add<W>(q[u], r[u], all(exp_terms[term]));
  }
  MLXG_EACH sum[u] = r[u] + 1.0f;
  MLXG_EACH q[u] = multiply_add<W>(q[u], r[u] * r[u], r[u] - (sum[u] - 1.0f));
  MLXG_EACH x[u] = scale_or_zero<W>(sum[u] + q[u], n[u], x[u], all(BASE_2 ? -126.0f : -104.0f));
#undef MLXG_EACH
}

// Replaces each element x of the tile by the power of x − base, times its factor unless FACTORS is false, and computes
// the sums of rows in the order of sum_terms (tile_columns.h) if SUMS. base, factors and sums have an element for each
// of the ROWS rows.
template <bool BASE_2, bool FACTORS, bool SUMS, int COLUMNS, int ROWS>
[[gnu::noinline]] void exponentials(float (*tile)[ROWS], const float* base, const float* factors, float* sums) {
  constexpr int W = ROWS < floats_per_register ? 8 : floats_per_register;
  for (int i = 0; i < ROWS; i += W) {
    const floats<W> row_base = load_floats<W>(base + i), factor = FACTORS ? load_floats<W>(factors + i) : floats<W>{};
    floats<W> parts[8] = {};
    for (int j = 0; j < COLUMNS; j += 8) {
#pragma GCC unroll 2
      for (int k = 0; k < 8; k += 4) {
        floats<W> x[4];
#pragma GCC unroll 4
        for (int u = 0; u < 4; ++u) {
          x[u] = load_floats<W>(tile[j + k + u] + i) - row_base;
        }
        exponentials<BASE_2, W>(x);
#pragma GCC unroll 4
        for (int u = 0; u < 4; ++u) {
          x[u] = FACTORS ? x[u] * factor : x[u];
          store_floats<W>(x[u], tile[j + k + u] + i);
          if (SUMS) {
            parts[k + u] += x[u];
          }
        }
      }
    }
    if (SUMS) {
#pragma GCC unroll 4
      for (int k = 0; k < 4; ++k) {
        parts[k] += parts[k + 4];
      }
      store_floats<W>((parts[0] + parts[2]) + (parts[1] + parts[3]), sums + i);
    }
  }
}

}  // namespace mlxg

#endif

#endif
