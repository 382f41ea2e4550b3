// Templates over operations, sizes and switches.
//
// Reduces each row by an operation: 0 sum, 1 product, 2 maximum, 3 sum of squares.
//
//   y[r] = ⊕_i f(x[r, i])
//
// The operations are classes with an identity, a map of one element and a binary operation. A template argument
// selects one. A thread processes C elements at a time, unrolled.
//
// Launch: one simdgroup per row; grid 32·rows.

#include <metal_stdlib>
using namespace metal;

struct sum_operation {
  static constexpr constant float identity = 0;
  float operator()(float x) const { return x; }
  float join(float a, float b) const { return a + b; }
};
struct product_operation {
  static constexpr constant float identity = 1;
  float operator()(float x) const { return x; }
  float join(float a, float b) const { return a * b; }
};
struct max_operation {
  static constexpr constant float identity = -INFINITY;
  float operator()(float x) const { return x; }
  float join(float a, float b) const { return max(a, b); }
};
struct square_operation : sum_operation {
  float operator()(float x) const { return x * x; }
};

template <int op>
struct operation_of;
template <>
struct operation_of<0> {
  using type = sum_operation;
};
template <>
struct operation_of<1> {
  using type = product_operation;
};
template <>
struct operation_of<2> {
  using type = max_operation;
};
template <>
struct operation_of<3> {
  using type = square_operation;
};

template <typename Operation, typename T, int C>
inline float part(Operation op, device const T* row, uint width, uint lane) {
  float r = Operation::identity;
  uint i = lane * C;
  for (; i + C <= width; i += 32 * C) {
#pragma clang loop unroll(full)
    for (int c = 0; c < C; c++) {
      r = op.join(r, op(float(row[i + uint(c)])));
    }
  }
  for (; i < width; i++) {
    r = op.join(r, op(float(row[i])));
  }
  return r;
}

template <typename T, int op, int C, bool root>
[[kernel]] void reduce_rows(
    device const T* x [[buffer(0)]],
    constant uint& width [[buffer(1)]],
    device T* y [[buffer(2)]],
    uint i [[thread_position_in_grid]],
    uint lane [[thread_index_in_simdgroup]]) {
  using Operation = typename operation_of<op>::type;
  const Operation operation{};
  float r = part<Operation, T, C>(operation, x + ulong(i / 32) * width, width, lane);
  for (ushort distance = 1; distance < 32; distance *= 2) {
    r = operation.join(r, simd_shuffle_xor(r, distance));
  }
  if (lane == 0) {
    if (root) {
      r = sqrt(abs(r));
    }
    y[i / 32] = T(r);
  }
}
