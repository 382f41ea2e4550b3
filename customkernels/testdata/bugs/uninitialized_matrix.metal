// Adds a matrix product to an uninitialized accumulator. The finding is at the store.
//
// launch: uninitialized_matrix_bug uninitialized_matrix_fixed
//   with: grid=32 threadgroup=32 a=float32[8,8] b=float32[8,8] c=out:float32[8,8]
#include <metal_stdlib>
using namespace metal;

kernel void uninitialized_matrix_bug(
    device const float* a [[buffer(0)]],
    device const float* b [[buffer(1)]],
    device float* c [[buffer(2)]]) {
  simdgroup_float8x8 left, right, product;
  simdgroup_load(left, a, 8);
  simdgroup_load(right, b, 8);
  simdgroup_multiply_accumulate(product, left, right, product);
  simdgroup_store(product, c, 8);  // want: uninitialized-read
}

kernel void uninitialized_matrix_fixed(
    device const float* a [[buffer(0)]],
    device const float* b [[buffer(1)]],
    device float* c [[buffer(2)]]) {
  simdgroup_float8x8 left, right, product;
  simdgroup_load(left, a, 8);
  simdgroup_load(right, b, 8);
  simdgroup_multiply(product, left, right);
  simdgroup_store(product, c, 8);
}
