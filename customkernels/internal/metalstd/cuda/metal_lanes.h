// SIMD operations and threadgroup memory on NVIDIA GPUs: a simdgroup is a warp, and a threadgroup is a block.
//
// An operation includes the active lanes of the warp. Every operation reads the mask once, so that a diverged or
// partial simdgroup computes Metal's result.
#ifndef METAL_LANES_H
#define METAL_LANES_H

#include "metal_reduce.h"

namespace mlxg {

constexpr unsigned simd_width = 32;

// Only the host distinguishes calls by their line.
struct line {};
#define MLXG_LINE ::mlxg::line line = {}

// The running thread. CUDA and Metal number lanes equally, by the index of the thread in its threadgroup.
struct self {
  MLXG_INLINE uint32_t lane() const {
    uint32_t lane;
    asm("mov.u32 %0, %%laneid;" : "=r"(lane));
    return lane;
  }
};

// A threadgroup variable. It is an array of bytes in shared memory, where CUDA initializes nothing.
template <class T, int id>
MLXG_INLINE T& threadgroup_variable() {
  alignas(alignof(T) < 16 ? 16 : alignof(T)) __shared__ unsigned char memory[sizeof(T)];
  return *reinterpret_cast<T*>(memory);
}

// A threadgroup variable in dynamic shared memory, which may exceed 48 KiB. Variables follow each other, aligned to
// 1024 bytes. `at` is the end of the previous variable.
alignas(1024) extern __shared__ unsigned char dynamic_memory[];
template <class T>
constexpr unsigned end_of_variable(unsigned at) {
  return at + (unsigned(sizeof(T)) + 1023) / 1024 * 1024;
}
template <class T, unsigned at>
MLXG_INLINE T& dynamic_variable() {
  return *reinterpret_cast<T*>(dynamic_memory + at);
}

template <class>
MLXG_INLINE void wait_threadgroup(uint32_t, line) {
  __syncthreads();
}
template <int = 0>
MLXG_INLINE void wait_simdgroup(uint32_t, line) {
  __syncwarp(__activemask());
}

// Only the checker compares the arguments of lanes.
MLXG_INLINE void uniform(uint32_t, uint32_t) {}

// ---- moving values ----

// Applies an exchange between lanes to each 32-bit word of a value.
template <class T, class Exchange>
MLXG_INLINE T exchanged(const T& v, Exchange exchange) {
  constexpr unsigned words = (sizeof(T) + 3) / 4;
  uint32_t buffer[words] = {};
  ::memcpy(buffer, &v, sizeof(T));
#pragma unroll
  for (unsigned i = 0; i < words; ++i) {
    buffer[i] = exchange(buffer[i]);
  }
  T r;
  ::memcpy(&r, buffer, sizeof(T));
  return r;
}

// Returns the value of another lane.
template <class T>
MLXG_INLINE T from_lane(uint32_t mask, const T& v, uint32_t lane) {
  return exchanged(v, [=](uint32_t word) { return __shfl_sync(mask, word, int(lane)); });
}

// Returns the value of the lane whose number differs in one bit. All lanes must be active.
template <class T>
MLXG_INLINE T from_opposite(const T& v, unsigned bit) {
  return exchanged(v, [=](uint32_t word) { return __shfl_xor_sync(0xffffffffu, word, int(bit)); });
}

// Gives each active lane the value of the lane it names. If that lane is inactive, where MSL defines no result, it
// keeps its own value.
template <class T>
struct shuffle {
  MLXG_INLINE static T run(const self&, const T& v, uint32_t from, line) {
    const uint32_t active = __activemask();
    const T other = from_lane(active, v, from % simd_width);
    return active >> from % simd_width & 1u ? other : v;
  }
};

// Gives all lanes the value of the first active lane.
template <class T, unsigned width>
struct broadcast_first {
  MLXG_INLINE static T run(const T& v, line) {
    const uint32_t active = __activemask();
    const uint32_t first = self().lane() / width * width;
    const uint32_t part = width == 32 ? active : active >> first & ((1u << width % 32) - 1);
    return from_lane(active, v, first + uint32_t(__ffs(int(part)) - 1));
  }
};

// ---- reductions and scans ----

// Combines the values of the active lanes one after another, in lane order, if some lanes are inactive. It is not
// inlined, because it is seldom needed and would make its caller wait for earlier loads.
template <class T, class Op, unsigned width>
__device__ __attribute__((noinline)) T reduce_some_lanes(T v, uint32_t active) {
  const uint32_t first = self().lane() / width * width;
  T sum = Op::template identity<T>();
  for (uint32_t lane = first; lane < first + width; ++lane) {
    const T other = from_lane(active, v, lane);
    if (active >> lane & 1u) {
      sum = Op::template combine<T>(sum, other);
    }
  }
  return sum;
}

// Combines the values of the active lanes, in pairs if all are active. All lanes compute the same result, because
// combining is commutative.
template <class T, class Op, unsigned width>
MLXG_INLINE T reduce_lanes(T v) {
  const uint32_t active = __activemask();
  if (active != 0xffffffffu) {
    return reduce_some_lanes<T, Op, width>(v, active);
  }
#pragma unroll
  for (unsigned bit = width / 2; bit > 0; bit /= 2) {
    v = Op::template combine<T>(v, from_opposite(v, bit));
  }
  return v;
}
template <class T, class Op>
struct reduction {
  MLXG_INLINE static T run(const T& v, line) { return reduce_lanes<T, Op, 32>(v); }
};
template <class T, class Op>
struct quad_reduction {
  MLXG_INLINE static T run(const T& v, line) { return reduce_lanes<T, Op, 4>(v); }
};

// ---- sums of two or three floats ----
//
// Their exchanges share shuffles: after the first one, a lane has the sum of one component only. The additions have the
// order of reduce_lanes, so the sums have the same bits. All lanes must be active.

// Adds pairs of lanes whose numbers differ in `bit`. The lane without the bit gets the sum of a, the other the sum of
// b.
MLXG_INLINE float sum_of_opposite(float a, float b, unsigned bit) {
  const bool second = self().lane() & bit;
  return (second ? b : a) + from_opposite(second ? a : b, bit);
}

// Sums lanes whose numbers differ in the bits up to `first`.
template <unsigned first>
MLXG_INLINE float sum_of_lanes(float v) {
#pragma unroll
  for (unsigned bit = first; bit > 0; bit /= 2) {
    v += from_opposite(v, bit);
  }
  return v;
}

// Returns, to lane component_lane(i), the sum of component i over the warp.
MLXG_INLINE float component_sum(metal::float2 v) {
  return sum_of_lanes<8>(sum_of_opposite(v.data[0], v.data[1], 16));
}
MLXG_INLINE float component_sum(metal::float3 v) {
  const float third = v.data[2] + from_opposite(v.data[2], 16);
  return sum_of_lanes<4>(sum_of_opposite(sum_of_opposite(v.data[0], v.data[1], 16), third, 8));
}
MLXG_INLINE unsigned component_lane(unsigned i) {
  return 16 * i % 24;  // 0, 16, 8
}

template <int N>
struct reduction<metal::vec<float, N>, op_sum> {
  using T = metal::vec<float, N>;
  MLXG_INLINE static T run(const T& v, line) {
    if constexpr (N > 3) {
      return reduce_lanes<T, op_sum, 32>(v);
    } else {
      const uint32_t active = __activemask();
      if (active != 0xffffffffu) {
        return reduce_some_lanes<T, op_sum, 32>(v, active);
      }
      const float sum = component_sum(v);
      T r;
#pragma unroll
      for (int i = 0; i < N; ++i) {
        r.data[i] = from_lane(active, sum, component_lane(i));
      }
      return r;
    }
  }
};

// The shaders' threadgroup_sum of two or three floats calls the function of this header.
#define MLXG_THREADGROUP_SUM 1

// Returns the sum over at most 4·LANES warps of a block to every thread. LANES lanes load four warps' sums each. They
// add them in the order of a shuffle of one sum per lane, so the result has the same bits.
template <unsigned LANES, class T>
MLXG_INLINE T sum_of_warps(T value, float* scratch, unsigned lane, unsigned simdgroup, unsigned simdgroups) {
  constexpr int N = metal::detail::lanes<T>;
  const float own = component_sum(value);
  const unsigned component = lane == 8 ? 2 : lane / 16;
  if (component < N && component_lane(component) == lane) {
    scratch[32 * component + simdgroup % LANES * 4 + simdgroup / LANES] = own;
  }
  __syncthreads();
  float sums[N];
#pragma unroll
  for (int i = 0; i < N; ++i) {
    float four[4];  // of warps lane % LANES, LANES apart
#pragma unroll
    for (unsigned k = 0; k < 4; ++k) {
      four[k] = lane % LANES + k * LANES < simdgroups ? scratch[32 * i + lane % LANES * 4 + k] : 0.0f;
    }
    sums[i] = sum_of_lanes<LANES / 2>(four[0] + four[2] + (four[1] + four[3]));
  }
  T result;
  ::memcpy(&result, sums, sizeof(sums));
  return result;
}

// Returns the sum of a float2 or float3 over a block of several whole warps to every thread. scratch has 32 floats for
// each component.
template <class T>
MLXG_INLINE T threadgroup_sum(T value, float* scratch, unsigned lane, unsigned simdgroup, unsigned simdgroups) {
  return simdgroups <= 4    ? sum_of_warps<1>(value, scratch, lane, simdgroup, simdgroups)
         : simdgroups <= 8  ? sum_of_warps<2>(value, scratch, lane, simdgroup, simdgroups)
         : simdgroups <= 16 ? sum_of_warps<4>(value, scratch, lane, simdgroup, simdgroups)
                            : sum_of_warps<8>(value, scratch, lane, simdgroup, simdgroups);
}

// Scans over the active lanes in lane order, in groups of `width` lanes.
template <class T, class Op, bool inclusive, unsigned width>
struct scan {
  MLXG_INLINE static T run(const T& v, line) {
    const uint32_t active = __activemask(), lane = self().lane();
    const uint32_t first = lane / width * width;
    T sum = Op::template start<T>();
    bool any = false;
    for (uint32_t i = first; i < first + width; ++i) {
      const T other = from_lane(active, v, i);
      if (!(active >> i & 1u) || i > lane || (!inclusive && i == lane)) {
        continue;
      }
      sum = any ? Op::template combine<T>(sum, other) : other;
      any = true;
    }
    return sum;
  }
};

// ---- votes ----

struct vote_result {
  uint32_t yes, active;
};
template <int = 0>
struct vote {
  MLXG_INLINE static vote_result run(bool v, line) {
    const uint32_t active = __activemask();
    return {__ballot_sync(active, v), active};
  }
};

}  // namespace mlxg

#endif
