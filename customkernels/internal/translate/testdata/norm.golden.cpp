#include "metal_host.h"
namespace metal { namespace mlxg_shader { // One file with the constructs that a loader must handle.




#define WIDTH_INDEX 5
#define DEV       
         constexpr int kTable = 2;
const    float table[kTable] = {1.0f, 2.0f};
static          constexpr const short kRows = 8;

/* A structure, in constant memory below. */
struct Params {
  float scale;
  uint width;
};

template <typename T>
inline float load(const        T* p, uint i) { return float(p[i]); }

                                                                      

inline float sum(            float* slots, float v, uint lane, uint simdgroup) {
  v = simd_sum(v);
  if (lane == 0) slots[simdgroup] = v;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  return slots[0];
}
template <typename V> const        V* mlxg_cast_const(const        void* p) { return (const        V*)p; }                                                                                                     
template <typename T, int N, int mlxg_STEP, bool SCALED>
           void custom_kernel_norm__float16_t_4_2_1_float16_t_float16_t_floatc_uint32_ts_float_float16_t(
  const        float16_t* x              ,
  const        float16_t* weight              ,
  const          float* mlxg_table_in              ,
  const          uint32_t& width              ,
         float* sums              ,
         float16_t* y              ,
  uint simdgroup_index_in_threadgroup                                   ,
  uint thread_index_in_simdgroup                              ,
  uint3 thread_position_in_threadgroup                                   ,
  uint3 threadgroup_position_in_grid                                 ) {
  constexpr uint STEP = mlxg_STEP; auto table_in = mlxg_cast_const<float>(mlxg_table_in); uint3 tgid = threadgroup_position_in_grid; uint2 position = thread_position_in_threadgroup.xy; ushort lane = ushort(thread_index_in_simdgroup);
  typedef float mlxg_tg_type_0 [32]; mlxg_tg_type_0& buf = mlxg::threadgroup_variable<mlxg_tg_type_0, 0>(); typedef float mlxg_tg_type_1 [4][N + 1]; mlxg_tg_type_1& tile = mlxg::threadgroup_variable<mlxg_tg_type_1, 1>();
  typedef T mlxg_tg_type_2; mlxg_tg_type_2& last = mlxg::threadgroup_variable<mlxg_tg_type_2, 2>();
  const        T* row = x + tgid.x * width;
  float v = sum(buf, load(row, position.x) + load(table_in, 0), lane, simdgroup_index_in_threadgroup);
  tile[0][0] = v;
  if (lane == 0) last = T(v);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (uint i = 0; i < STEP; ++i) {
    y[tgid.x] = T(v * table[1]) + last + T(tile[0][0]); // }
  }
  if (SCALED) sums[tgid.x] = v * kRows;

}

                                                                                                                                                                                                                                                                                                                                                                  
}}
namespace {
void mlxg_invoke(void* const* buffers, const mlxg::thread_position& p) {
  (void)buffers; (void)p;
  using namespace metal::mlxg_shader;
  metal::mlxg_shader::custom_kernel_norm__float16_t_4_2_1_float16_t_float16_t_floatc_uint32_ts_float_float16_t<float16_t, 4, 2, 1>(
      static_cast<const float16_t*>(buffers[0]),
      static_cast<const float16_t*>(buffers[1]),
      static_cast<const float*>(buffers[2]),
      *static_cast<const uint32_t*>(buffers[3]),
      static_cast<float*>(buffers[4]),
      static_cast<float16_t*>(buffers[5]),
      p.simdgroup_index_in_threadgroup,
      p.thread_index_in_simdgroup,
      p.thread_position_in_threadgroup,
      p.threadgroup_position_in_grid);
}
}
extern "C" const mlxg::entry mlxgrad_entry = {"custom_kernel_norm__float16_t_4_2_1_float16_t_float16_t_floatc_uint32_ts_float_float16_t", 6, mlxg_invoke};
