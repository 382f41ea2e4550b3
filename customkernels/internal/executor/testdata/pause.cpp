#include "metal_host.h"
// Each thread takes `steps` tickets and pauses after each. The sum of a threadgroup's steps is in threadgroup memory.
 void custom_kernel_pause(
  const int32_t& steps ,
  atomic<uint>* counter ,
  uint* tickets ,
  uint* sums ,
  const mlxg::thread_position& p ) {
  typedef uint mlxg_tg_type_0 [64]; mlxg_tg_type_0& sum = mlxg::threadgroup_variable<mlxg_tg_type_0, 0>();
  const uint group = p.threadgroup_position_in_grid.x, thread = p.thread_index_in_threadgroup;
  sum[thread] = 0;
  for (int i = 0; i < steps; i++) {
    tickets[p.thread_position_in_grid.x * steps + i] = atomic_fetch_add_explicit(counter, 1u, memory_order_relaxed);
    sum[thread] += group + i;
    mlxg::pause();
  }
  sums[p.thread_position_in_grid.x] = sum[thread];
}
namespace { void mlxg_invoke(void* const* buffers, const mlxg::thread_position& p) {
 custom_kernel_pause(*static_cast<const int32_t*>(buffers[0]), static_cast<atomic<uint>*>(buffers[1]), static_cast<uint*>(buffers[2]), static_cast<uint*>(buffers[3]), p); } }
extern "C" const mlxg::entry mlxgrad_entry = { "custom_kernel_pause", 4, mlxg_invoke };
