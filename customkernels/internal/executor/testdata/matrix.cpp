#include "metal_host.h"
// y = a·b + c for 8×8 matrices, with loads and stores of all kinds.
template <typename T>
 void custom_kernel_matrix(
  const T* a ,
  const T* b ,
  const float* c ,
  float* y ,
  T* extra ,
  uint3 threadgroup_position_in_grid ,
  uint3 thread_position_in_threadgroup ,
  uint thread_index_in_simdgroup ) {
  typedef float mlxg_tg_type_0 [64]; mlxg_tg_type_0& tile = mlxg::threadgroup_variable<mlxg_tg_type_0, 0>();
  const uint at = threadgroup_position_in_grid.x * 64;
  simdgroup_matrix<T, 8, 8> ma, mb;
  simdgroup_matrix<float, 8, 8> mc, md;
  simdgroup_load(ma, a + at);
  simdgroup_load(mb, b + at, 8, 0, true);  // b is stored transposed
  simdgroup_load(mc, c + at, 8);
  simdgroup_multiply_accumulate(md, ma, mb, mc);
  simdgroup_store(md, y + at, 8);
  simdgroup_store(md, tile, 8);
  simdgroup_barrier(mem_flags::mem_threadgroup);
  const uint lane = thread_index_in_simdgroup, qid = lane / 4;
  const uint row = (qid & 4) + (lane / 2) % 4, column = (qid & 2) * 2 + (lane % 2) * 2;
  bool good = true;
  for (uint i = 0; i < 2; ++i) {
    good = good && md.thread_elements()[i] == tile[row * 8 + column + i];
    mc.thread_elements()[i] = tile[(column + i) * 8 + row];
  }
  good = good && simd_all(good);
  simdgroup_matrix<float, 8, 8> identity = simdgroup_float8x8(1.0f), twice;
  simdgroup_multiply(twice, identity, mc);
  simdgroup_matrix<T, 8, 8> filled = make_filled_simdgroup_matrix<T, 8, 8>(T(3));
  filled.thread_elements()[0] = T(good);
  simdgroup_store(filled, extra + at);
  simdgroup_barrier(mem_flags::mem_device);
  simdgroup_store(twice, tile, 8, ulong2(0, 0), true);
  simdgroup_barrier(mem_flags::mem_threadgroup);
  if (tile[lane] != y[at + lane]) extra[at] = T(9);
}
namespace { void mlxg_invoke(void* const* buffers, const mlxg::thread_position& p) {
 custom_kernel_matrix<TYPE>(static_cast<const TYPE*>(buffers[0]), static_cast<const TYPE*>(buffers[1]), static_cast<const float*>(buffers[2]), static_cast<float*>(buffers[3]), static_cast<TYPE*>(buffers[4]), p.threadgroup_position_in_grid, p.thread_position_in_threadgroup, p.thread_index_in_simdgroup); } }
extern "C" const mlxg::entry mlxgrad_entry = { "custom_kernel_matrix", 5, mlxg_invoke };
