#include "metal_host.h"
// Threads of a threadgroup that synchronize. mode[0] selects the case.
 void custom_kernel_groups(
  const int32_t* mode ,
  const float* x ,
  float* y ,
  atomic<uint>* counts ,
  uint* attributes ,
  const mlxg::thread_position& p ) {
  typedef float mlxg_tg_type_0 [1024]; mlxg_tg_type_0& buf = mlxg::threadgroup_variable<mlxg_tg_type_0, 0>();
  typedef atomic_uint mlxg_tg_type_1 ; mlxg_tg_type_1& shared = mlxg::threadgroup_variable<mlxg_tg_type_1, 1>();
  const uint lid = p.thread_index_in_threadgroup;
  const uint3 n3 = p.threads_per_threadgroup;
  const uint n = n3.x * n3.y * n3.z;
  const uint3 g3 = p.threads_per_grid, at = p.thread_position_in_grid;
  const uint linear = (at.z * g3.y + at.y) * g3.x + at.x;
  switch (mode[0]) {
  case 0: {  // a tree reduction over a threadgroup of any size
    buf[lid] = x[linear];
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint width = n; width > 1;) {
      const uint half = (width + 1) / 2;
      if (lid < width / 2) buf[lid] += buf[lid + half];
      threadgroup_barrier(mem_flags::mem_threadgroup);
      width = half;
    }
    y[linear] = buf[0];
    break;
  }
  case 1: {  // position attributes
    uint* a = attributes + linear * 32;
    uint k = 0;
    const uint3 all[] = {p.thread_position_in_grid, p.thread_position_in_threadgroup, p.threadgroup_position_in_grid,
                    p.threads_per_threadgroup, p.dispatch_threads_per_threadgroup, p.threads_per_grid,
                    p.threadgroups_per_grid};
    for (uint3 v : all) { a[k++] = v.x; a[k++] = v.y; a[k++] = v.z; }
    a[k++] = p.thread_index_in_threadgroup; a[k++] = p.thread_index_in_simdgroup; a[k++] = p.simdgroup_index_in_threadgroup;
    a[k++] = p.thread_index_in_quadgroup; a[k++] = p.quadgroup_index_in_threadgroup;
    a[k++] = p.simdgroups_per_threadgroup; a[k++] = p.quadgroups_per_threadgroup;
    a[k++] = p.dispatch_simdgroups_per_threadgroup; a[k++] = p.dispatch_quadgroups_per_threadgroup;
    a[k++] = p.threads_per_simdgroup; a[k++] = p.thread_execution_width;
    break;
  }
  case 2: {  // barriers after some threads have returned
    buf[lid] = 1;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (lid % 3 == 1) return;
    buf[lid] = 2;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (lid >= 40) return;
    float sum = 0;
    for (uint i = 0; i < n; ++i) sum += buf[i];
    y[linear] = sum;
    break;
  }
  case 3: {  // a histogram in threadgroup memory, then in device memory
    if (lid == 0) atomic_store_explicit(&shared, 0u, memory_order_relaxed);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    atomic_fetch_add_explicit(&shared, uint(x[linear]), memory_order_relaxed);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (lid == 0) atomic_fetch_add_explicit(&counts[0], atomic_load_explicit(&shared, memory_order_relaxed), memory_order_relaxed);
    atomic_fetch_add_explicit(&counts[1 + uint(x[linear])], 1u, memory_order_relaxed);
    atomic_fetch_max_explicit(&counts[30], linear, memory_order_relaxed);
    atomic_fetch_or_explicit(&counts[29], 1u << lid % 32, memory_order_relaxed);
    atomic_fetch_add_explicit((atomic<float>*)&y[0], 0.5f, memory_order_relaxed);
    uint expected = 0;
    if (atomic_compare_exchange_weak_explicit(&counts[31], &expected, linear + 1, memory_order_relaxed, memory_order_relaxed))
      atomic_fetch_add_explicit(&counts[28], 1u, memory_order_relaxed);
    break;
  }
  case 5: {  // divergent barriers and SIMD calls: undefined on a GPU, but a run must end
    for (uint i = 0; i < lid % 7; ++i) threadgroup_barrier(mem_flags::mem_threadgroup);
    if (lid % 3 == 0) buf[lid] = simd_sum(1.0f);
    else if (lid % 3 == 1) threadgroup_barrier(mem_flags::mem_none);
    else { simdgroup_barrier(mem_flags::mem_none); if (lid % 2) return; }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    y[linear] = 1 + simd_max(0.0f);
    break;
  }
  case 4: {  // values pass through device memory between the simdgroups
    y[linear] = x[linear];
    for (int round = 0; round < 5; ++round) {
      threadgroup_barrier(mem_flags::mem_device);
      const float v = y[linear - lid + (lid + 33) % n];
      threadgroup_barrier(mem_flags::mem_device);
      y[linear] = v + 1;
    }
    break;
  }
  }
}
namespace { void mlxg_invoke(void* const* buffers, const mlxg::thread_position& p) {
 custom_kernel_groups(static_cast<const int32_t*>(buffers[0]), static_cast<const float*>(buffers[1]), static_cast<float*>(buffers[2]), static_cast<atomic<uint>*>(buffers[3]), static_cast<uint*>(buffers[4]), p); } }
extern "C" const mlxg::entry mlxgrad_entry = { "custom_kernel_groups", 5, mlxg_invoke };
