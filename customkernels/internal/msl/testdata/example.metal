// One file with the constructs that a loader must handle.
#include <metal_stdlib>
#include <metal_simdgroup>
using namespace metal;

#define WIDTH_INDEX 5
#define DEV device
constant constexpr int kTable = 2;
constant float table[kTable] = {1.0f, 2.0f};
static constant constexpr const short kRows = 8;

/* A structure, in constant memory below. */
struct Params {
  float scale;
  uint width;
};

template <typename T>
inline float load(const device T* p, uint i) { return float(p[i]); }
template <typename T>
inline float load(const constant T* p, uint i) { return float(p[i]); }

inline float sum(threadgroup float* slots, float v, uint lane, uint simdgroup) {
  v = simd_sum(v);
  if (lane == 0) slots[simdgroup] = v;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  return slots[0];
}

template <typename T, int N = 4, uint STEP = 1, bool SCALED = true>
[[kernel, max_total_threads_per_threadgroup(256)]] void norm(
    device const T* x [[buffer(0)]],
    const DEV T* weight [[buffer(1)]],
    constant uint& width [[buffer(WIDTH_INDEX)]],
    constant float* table_in [[buffer(2)]],
    device T* y [[buffer(6)]],
    device float* sums,
    uint3 tgid [[threadgroup_position_in_grid]],
    uint2 position [[thread_position_in_threadgroup]],
    ushort lane [[thread_index_in_simdgroup]],
    uint simdgroup_index_in_threadgroup [[simdgroup_index_in_threadgroup]]) {
  threadgroup float buf[32], tile[4][N + 1];
  threadgroup T last;
  const device T* row = x + tgid.x * width;
  float v = sum(buf, load(row, position.x) + load(table_in, 0), lane, simdgroup_index_in_threadgroup);
  tile[0][0] = v;
  if (lane == 0) last = T(v);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (uint i = 0; i < STEP; ++i) {
    y[tgid.x] = T(v * table[1]) + last + T(tile[0][0]); // }
  }
  if (SCALED) sums[tgid.x] = v * kRows;
}

template [[host_name("norm_float")]] [[kernel]] void norm<float>(device const float*, const device float*, constant uint&, constant float*, device float*, device float*, uint3, uint2, ushort, uint);
#define instantiate_norm(type) \
  template [[host_name("norm_" #type)]] [[kernel]] decltype(norm<type>) norm<type>;
instantiate_norm(half)
instantiate_norm(bfloat)

#if 0
kernel void old(device float* y) { this does not even parse ' }
#endif

#ifdef __SOME_SWITCH__
kernel void histogram(
    device atomic_uint* counts [[buffer(2)]],
    const device float4* v,
    constant Params& params,
    device float* plain,
    device float& total,
    uint gid [[thread_position_in_grid]]) {
  atomic_fetch_add_explicit(&counts[uint(v[gid].x) % params.width], 1u, memory_order_relaxed);
  plain[gid] = params.scale;
  if (gid == 0) total = 1;
}
#endif
