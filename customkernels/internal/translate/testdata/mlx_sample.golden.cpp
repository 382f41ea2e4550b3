#include "metal_host.h"
namespace metal { namespace mlxg_shader { template <typename T> T helper(const        T* x) { return x[0]; }
template <typename T, int N, bool B>
           void custom_kernel_rms_dx__float16_t_3_1_float16_t_bfloat16_tc_int32_t_floats_float16_t_float(
  const        float16_t* x              ,
  const          bfloat16_t* w              ,
  const        int32_t* dims              ,
  const          float& s0              ,
         float16_t* dx              ,
         float* p              ,
  uint3 thread_position_in_threadgroup                                   ,
  uint3 threadgroup_position_in_grid                                 ) {
  uint row = threadgroup_position_in_grid.x; uint lid = thread_position_in_threadgroup.x;
  typedef float mlxg_tg_type_0 [32]; mlxg_tg_type_0& buf = mlxg::threadgroup_variable<mlxg_tg_type_0, 0>();
  dx[row] = x[row]*T(s0);

}

                                                                                                                                                                                                                                                                                                                                                            
}}
namespace {
void mlxg_invoke(void* const* buffers, const mlxg::thread_position& p) {
  (void)buffers; (void)p;
  using namespace metal::mlxg_shader;
  metal::mlxg_shader::custom_kernel_rms_dx__float16_t_3_1_float16_t_bfloat16_tc_int32_t_floats_float16_t_float<float16_t, 3, 1>(
      static_cast<const float16_t*>(buffers[0]),
      static_cast<const bfloat16_t*>(buffers[1]),
      static_cast<const int32_t*>(buffers[2]),
      *static_cast<const float*>(buffers[3]),
      static_cast<float16_t*>(buffers[4]),
      static_cast<float*>(buffers[5]),
      p.thread_position_in_threadgroup,
      p.threadgroup_position_in_grid);
}
}
extern "C" const mlxg::entry mlxgrad_entry = {"custom_kernel_rms_dx__float16_t_3_1_float16_t_bfloat16_tc_int32_t_floats_float16_t_float", 6, mlxg_invoke};
