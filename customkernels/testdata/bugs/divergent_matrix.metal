// A product of two 8×8 matrices in which only half of the lanes take part.
//
// launch: divergent_matrix_bug divergent_matrix_fixed
//   with: grid=32 threadgroup=32 a=float32[8,8] b=float32[8,8] c=out:float32[8,8]
#include <metal_stdlib>
using namespace metal;

kernel void divergent_matrix_bug(
    device const float* a [[buffer(0)]],
    device const float* b [[buffer(1)]],
    device float* c [[buffer(2)]],
    uint lane [[thread_index_in_simdgroup]]) {
  simdgroup_float8x8 left, right;
  simdgroup_float8x8 product = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
  simdgroup_load(left, a, 8);
  simdgroup_load(right, b, 8);
  if (lane < 16) {
    simdgroup_multiply_accumulate(product, left, right, product);  // want: divergent-matrix
  }
  simdgroup_store(product, c, 8);
}

kernel void divergent_matrix_fixed(
    device const float* a [[buffer(0)]],
    device const float* b [[buffer(1)]],
    device float* c [[buffer(2)]]) {
  simdgroup_float8x8 left, right;
  simdgroup_float8x8 product = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
  simdgroup_load(left, a, 8);
  simdgroup_load(right, b, 8);
  simdgroup_multiply_accumulate(product, left, right, product);
  simdgroup_store(product, c, 8);
}
