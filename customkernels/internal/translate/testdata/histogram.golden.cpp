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



























#define instantiate_norm(type) \
  template [[host_name("norm_" #type)]] [[kernel]] decltype(norm<type>) norm<type>;



#if 0
       void old(       float* y) { this does not even parse ' }
#endif

#ifdef __SOME_SWITCH__











#endif
template <typename V> const        V* mlxg_cast_const(const        void* p) { return (const        V*)p; }                                                                                                     
           void custom_kernel_histogram_float_uint8_t_uint32_t_float_float(
  const        float* mlxg_v              ,
  const        uint8_t* mlxg_params              ,
         atomic<uint32_t>* counts              ,
         atomic<float>* mlxg_plain              ,
         atomic<float>* mlxg_total              ,
  uint3 thread_position_in_grid                            ) {
  const        float4* v = reinterpret_cast<const        float4*>(mlxg_v); decltype(*mlxg_cast_const<Params>(mlxg_params)) params = *mlxg_cast_const<Params>(mlxg_params);        float* plain = reinterpret_cast<       float*>(mlxg_plain);        float& total = *reinterpret_cast<       float*>(mlxg_total); uint gid = thread_position_in_grid.x;
  atomic_fetch_add_explicit(&counts[uint(v[gid].x) % params.width], 1u, memory_order_relaxed);
  plain[gid] = params.scale;
  if (gid == 0) total = 1;

}
}}
namespace {
void mlxg_invoke(void* const* buffers, const mlxg::thread_position& p) {
  (void)buffers; (void)p;
  using namespace metal::mlxg_shader;
  metal::mlxg_shader::custom_kernel_histogram_float_uint8_t_uint32_t_float_float(
      static_cast<const float*>(buffers[0]),
      static_cast<const uint8_t*>(buffers[1]),
      static_cast<atomic<uint32_t>*>(buffers[2]),
      static_cast<atomic<float>*>(buffers[3]),
      static_cast<atomic<float>*>(buffers[4]),
      p.thread_position_in_grid);
}
}
extern "C" const mlxg::entry mlxgrad_entry = {"custom_kernel_histogram_float_uint8_t_uint32_t_float_float", 5, mlxg_invoke};
