#include "metal_host.h"
template <typename T>
 void custom_kernel_row_sum(
  const T* x ,
  const int32_t* dims,
  float* y ,
  uint3 threadgroup_position_in_grid, uint3 threads_per_threadgroup, uint3 thread_position_in_threadgroup,
  uint simdgroup_index_in_threadgroup, uint thread_index_in_simdgroup, uint simdgroups_per_threadgroup) {
  typedef float mlxg_tg_type_0 [32]; mlxg_tg_type_0& buf = mlxg::threadgroup_variable<mlxg_tg_type_0, 0>();
  uint row = threadgroup_position_in_grid.x; int width = dims[0];
  float sum = 0;
  for (int i = thread_position_in_threadgroup.x; i < width; i += threads_per_threadgroup.x) sum += x[row * width + i];
  sum = simd_sum(sum);
  if (thread_index_in_simdgroup == 0) buf[simdgroup_index_in_threadgroup] = sum;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (simdgroup_index_in_threadgroup == 0) {
    sum = thread_index_in_simdgroup < simdgroups_per_threadgroup ? buf[thread_index_in_simdgroup] : 0;
    sum = simd_sum(sum);
    if (thread_index_in_simdgroup == 0) y[row] = sum;
  }
}
namespace { void mlxg_invoke(void* const* buffers, const mlxg::thread_position& p) {
 custom_kernel_row_sum<bfloat16_t>(static_cast<const bfloat16_t*>(buffers[0]), static_cast<const int32_t*>(buffers[1]), static_cast<float*>(buffers[2]), p.threadgroup_position_in_grid, p.threads_per_threadgroup, p.thread_position_in_threadgroup, p.simdgroup_index_in_threadgroup, p.thread_index_in_simdgroup, p.simdgroups_per_threadgroup); } }
extern "C" const mlxg::entry mlxgrad_entry = { "custom_kernel_row_sum", 3, mlxg_invoke };
