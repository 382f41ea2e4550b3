#include "metal_host.h"
// Fused gradients of RMSNorm. Each simdgroup handles dims[1] rows and accumulates its
// partial sum of dw in device memory.
template <typename T>
 void custom_kernel_rms_norm_like(
  const T* x ,
  const T* w ,
  const T* g ,
  const int32_t* dims ,
  T* dx ,
  float* dw ,
  uint3 threadgroup_position_in_grid ,
  uint thread_index_in_simdgroup ) {
  const int width = dims[0], rows = dims[1];
  const uint group = threadgroup_position_in_grid.x;
  float* part = dw + group * width;
  constexpr int n = READS;
  for (int i = thread_index_in_simdgroup * n; i < width; i += 32 * n)
    for (int k = 0; k < n; ++k) part[i + k] = 0;
  for (int r = 0; r < rows; ++r) {
    const uint at = (group * rows + r) * width;
    float xx[n] = {}, gwx[n] = {};
    for (int i = thread_index_in_simdgroup * n; i < width; i += 32 * n) {
      for (int k = 0; k < n; ++k) {
        const float xi = float(x[at + i + k]);
        xx[k] += xi * xi;
        gwx[k] += float(g[at + i + k]) * float(w[i + k]) * xi;
      }
    }
    for (int k = 1; k < n; ++k) xx[0] += xx[k], gwx[0] += gwx[k];
    const float sum = simd_sum(xx[0]);
    const float dot = simd_sum(gwx[0]);
    const float inv = metal::rsqrt(sum / width + 1e-5f);
    const float c = dot * inv * inv * inv / width;
    for (int i = thread_index_in_simdgroup * n; i < width; i += 32 * n) {
      for (int k = 0; k < n; ++k) {
        const float xi = float(x[at + i + k]), gi = float(g[at + i + k]);
        dx[at + i + k] = T(gi * float(w[i + k]) * inv - xi * c);
        part[i + k] += gi * xi * inv;
      }
    }
  }
}
namespace { void mlxg_invoke(void* const* buffers, const mlxg::thread_position& p) {
 custom_kernel_rms_norm_like<TYPE>(static_cast<const TYPE*>(buffers[0]), static_cast<const TYPE*>(buffers[1]), static_cast<const TYPE*>(buffers[2]), static_cast<const int32_t*>(buffers[3]), static_cast<TYPE*>(buffers[4]), static_cast<float*>(buffers[5]), p.threadgroup_position_in_grid, p.thread_index_in_simdgroup); } }
extern "C" const mlxg::entry mlxgrad_entry = { "custom_kernel_rms_norm_like", 6, mlxg_invoke };
