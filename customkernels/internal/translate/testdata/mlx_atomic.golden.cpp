#include "metal_host.h"
#define A 1
namespace metal { namespace mlxg_shader {            void custom_kernel_hist_float16_t_uint32_t_float(
  const        float16_t* x              ,
  const          int* x_shape              ,
  const          int64_t* x_strides              ,
  const          int& x_ndim              ,
         atomic<uint32_t>* h              ,
         atomic<float>* y              ,
  uint3 thread_position_in_grid                            ) {
  uint i = thread_position_in_grid.x; // x_shape x_strides x_ndim
  atomic_fetch_add_explicit(&h[0], 1u, memory_order_relaxed);
}
}}
namespace {
void mlxg_invoke(void* const* buffers, const mlxg::thread_position& p) {
  (void)buffers; (void)p;
  using namespace metal::mlxg_shader;
  metal::mlxg_shader::custom_kernel_hist_float16_t_uint32_t_float(
      static_cast<const float16_t*>(buffers[0]),
      static_cast<const int*>(buffers[1]),
      static_cast<const int64_t*>(buffers[2]),
      *static_cast<const int*>(buffers[3]),
      static_cast<atomic<uint32_t>*>(buffers[4]),
      static_cast<atomic<float>*>(buffers[5]),
      p.thread_position_in_grid);
}
}
extern "C" const mlxg::entry mlxgrad_entry = {"custom_kernel_hist_float16_t_uint32_t_float", 6, mlxg_invoke};
