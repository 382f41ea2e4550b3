#include "metal_host.h"
// Calls one SIMD function on every lane of a full or partial simdgroup. mode[0] selects the function, and mode[1]
// is its argument. T is a type of 4 bytes.
template <typename T>
T apply(int mode, int arg, T v, uint lane) {
  switch (mode) {
    case 0: return simd_sum(v);
    case 1: return simd_product(v);
    case 2: return simd_min(v);
    case 3: return simd_max(v);
    case 4: return simd_prefix_inclusive_sum(v);
    case 5: return simd_prefix_exclusive_sum(v);
    case 6: return simd_prefix_inclusive_product(v);
    case 7: return simd_prefix_exclusive_product(v);
    case 8: return simd_broadcast(v, arg);
    case 9: return simd_broadcast_first(v);
    case 10: return simd_shuffle(v, lane * 7 + arg);
    case 11: return simd_shuffle_xor(v, arg);
    case 12: return simd_shuffle_up(v, arg);
    case 13: return simd_shuffle_down(v, arg);
    case 14: return simd_shuffle_rotate_up(v, arg);
    case 15: return simd_shuffle_rotate_down(v, arg);
    case 16: return simd_shuffle_and_fill_up(v, T(v + T(100)), arg);
    case 17: return simd_shuffle_and_fill_down(v, T(v + T(100)), arg);
    case 18: return T(uint(simd_vote::vote_t(simd_ballot(v > T(3)))));
    case 19: return T(simd_all(v > T(0)) + 2 * simd_any(v > T(3)) + 4 * simd_is_first());
    case 20: return T(uint(simd_vote::vote_t(simd_active_threads_mask())));
    case 21: return quad_sum(v);
    case 22: return quad_max(v);
    case 23: return quad_prefix_exclusive_sum(v);
    case 24: return quad_broadcast(v, arg % 4);
    case 25: return quad_shuffle_xor(v, arg % 4);
    case 26: return quad_shuffle_rotate_up(v, arg % 4);
    case 27: return T(quad_vote::vote_t(quad_ballot(v > T(3))));
    case 28: return simd_shuffle_and_fill_up(v, T(v + T(100)), arg % 8, 8);
    case 29: return quad_shuffle_down(v, arg % 4);
    case 30: return quad_min(v);
    case 31: return quad_product(v);
  }
  return v;
}
// Calls a SIMD function with a type of another size. The result must be the same.
template <typename T>
T wide(int mode, T v, uint lane) {
  switch (mode) {
    case 0: return simd_sum(v);
    case 1: return simd_product(v);
    case 2: return simd_min(v);
    case 3: return simd_max(v);
    case 4: return simd_prefix_inclusive_sum(v);
    case 13: return simd_shuffle_down(v, 3);
  }
  return v;
}
template <typename T>
T bits(int mode, T v) {
  switch (mode) {
    case 40: return simd_and(v);
    case 41: return simd_or(v);
    case 42: return simd_xor(v);
    case 43: return quad_and(v);
  }
  return v;
}
 void custom_kernel_simd(
  const int32_t* mode ,
  const uint* x ,
  const float* xf ,
  uint* y ,
  float* yf ,
  uint3 thread_position_in_grid ,
  uint thread_index_in_simdgroup ) {
  const uint i = thread_position_in_grid.x, lane = thread_index_in_simdgroup;
  if (mode[0] < 40) {
    y[i] = apply<uint>(mode[0], mode[1], x[i], lane);
    yf[i] = apply<float>(mode[0], mode[1], xf[i], lane);
    if (mode[0] <= 4 || mode[0] == 13 && mode[1] == 3) {
      if (uint(wide<ulong>(mode[0], x[i], lane)) != y[i]) y[i] = 0xdead0001;
      if (wide<ushort>(mode[0], x[i], lane) != ushort(y[i])) y[i] = 0xdead0002;
      const uint4 v = wide<uint4>(mode[0], uint4(x[i]), lane);
      if (v.x != y[i] || v.w != y[i]) y[i] = 0xdead0003;
      const ulong4 u = wide<ulong4>(mode[0], ulong4(x[i]), lane);
      if (uint(u.x) != y[i] || uint(u.w) != y[i]) y[i] = 0xdead0004;
      if (float(wide<half>(mode[0], half(lane % 2), lane)) != wide<float>(mode[0], lane % 2, lane)) y[i] = 0xdead0005;
      if (float(wide<bfloat>(mode[0], bfloat(lane % 2), lane)) != wide<float>(mode[0], lane % 2, lane)) y[i] = 0xdead0006;
    }
    return;
  }
  if (mode[0] < 50) {
    y[i] = bits<uint>(mode[0], x[i]);
    return;
  }
  if (mode[0] == 50) {  // different SIMD functions in two branches
    if (lane % 2) y[i] = simd_sum(x[i]);
    else y[i] = simd_max(x[i]);
    y[i] += 1000 * simd_sum(1u);  // after the branches have joined
    return;
  }
  if (mode[0] == 51) {  // a loop that lanes leave after different numbers of iterations
    uint sum = 0;
    for (uint k = 0; k <= lane % 5; ++k) sum = sum * 64 + simd_sum(1u);
    y[i] = sum;
    yf[i] = simd_sum(1.0f);
    return;
  }
  if (mode[0] == 52) {  // some lanes have returned
    if (lane % 4 == 0) return;
    y[i] = simd_sum(x[i]);
    if (lane % 4 == 1) return;
    simdgroup_barrier(mem_flags::mem_none);
    y[i] += simd_broadcast_first(lane) << 16;
    return;
  }
  if (mode[0] == 53) {  // some lanes block at a barrier while others call a SIMD function before it
    if (lane < 8) y[i] = simd_sum(x[i]);
    threadgroup_barrier(mem_flags::mem_none);
    if (lane >= 8) y[i] = simd_sum(x[i]);
    return;
  }
  if (mode[0] == 54) {  // SIMD functions in two branches, with types of different sizes
    if (lane % 2) y[i] = uint(simd_sum(ulong(x[i]) << 32) >> 32);
    else y[i] = simd_sum(uchar(x[i]));
  }
}
namespace { void mlxg_invoke(void* const* buffers, const mlxg::thread_position& p) {
 custom_kernel_simd(static_cast<const int32_t*>(buffers[0]), static_cast<const uint*>(buffers[1]), static_cast<const float*>(buffers[2]), static_cast<uint*>(buffers[3]), static_cast<float*>(buffers[4]), p.thread_position_in_grid, p.thread_index_in_simdgroup); } }
extern "C" const mlxg::entry mlxgrad_entry = { "custom_kernel_simd", 5, mlxg_invoke };
