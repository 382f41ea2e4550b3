// Kernels that reach the limits of a CPU, for limits.go. A thread of the grid is a chunk of work for a thread of the
// host executor.
#include <metal_stdlib>
using namespace metal;

// Adds two arrays. Each thread adds COUNT consecutive elements.
template <int COUNT>
[[kernel]] void add(
    device const float* x [[buffer(0)]],
    device const float* y [[buffer(1)]],
    device float* sum [[buffer(2)]],
    uint i [[thread_position_in_grid]]) {
  const size_t first = size_t(i) * COUNT;
  for (int k = 0; k < COUNT; k++) {
    sum[first + k] = x[first + k] + y[first + k];
  }
}

// The floats of a vector register. Compilers do not vectorize fma() to the full width of the registers on x86-64.
#ifdef MLXG_THREAD_PRODUCTS
constexpr constant int LANES = mlxg::floats_per_register;
using Vector = mlxg::floats<LANES>;
inline void add_product(thread Vector& sum, Vector a, Vector b) {
  mlxg::fused_multiply_add<LANES>(sum, a, b);
}
#else
constexpr constant int LANES = 4;
using Vector = float4;
inline void add_product(thread Vector& sum, Vector a, Vector b) {
  sum = fma(a, b, sum);
}
#endif

// Sums of products in registers. It is a list, because compilers keep the members of a structure in registers, but not
// always the elements of an array.
template <int N>
struct Sums {
  Vector first;
  Sums<N - 1> rest;

  // The sums start differently, because the compiler would compute equal ones once.
  void init(Vector a) {
    first = a * float(N);
    rest.init(a);
  }
  void add(Vector a, Vector b) {
    add_product(first, a, b);
    rest.add(a, b);
  }
  Vector total() { return first + rest.total(); }
};
template <>
struct Sums<0> {
  void init(Vector) {}
  void add(Vector, Vector) {}
  Vector total() { return Vector{}; }
};

// Each thread computes FLOPS multiplications and additions. 12 sums hide the latency of two units with up to six cycles,
// and fit 16 registers.
template <int FLOPS>
[[kernel]] void multiply_add(
    device const float* x [[buffer(0)]], device float* result [[buffer(1)]], uint i [[thread_position_in_grid]]) {
  constexpr int N = 12;
  Vector a, b;
  for (int lane = 0; lane < LANES; lane++) {
    a[lane] = x[lane];
    b[lane] = x[lane + 1];
  }
  Sums<N> sums;
  sums.init(a);
  for (int step = 0; step < FLOPS / (2 * N * LANES); step++) {
    sums.add(a, b);
  }
  const Vector total = sums.total();
  result[i] = 0;
  for (int lane = 0; lane < LANES; lane++) {
    result[i] += total[lane];
  }
}
