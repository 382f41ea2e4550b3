// Common constructs of Metal kernels: macros that define functions, an overload of a function of Metal, arithmetic on
// packed vectors, an unnamed structure in threadgroup memory, bytes, a function constant that may stay undefined,
// default template arguments, and an alias of a kernel's type.
//
//   y[r] = scale · (Σ_i x[r, i], max_i x[r, i], Σ_i x[r, i]²),   scale = 1 if factor is not defined
//
// Launch: one simdgroup per row, N simdgroups per threadgroup; grid 32·rows.

#include <metal_stdlib>
using namespace metal;

#define FIRST 100
constant float factor [[function_constant(FIRST + 1)]];
constant float scale = is_function_constant_defined(factor) ? factor : 1.0f;

#define MAKE_SQUARE(T) inline T square_##T(T v) { return v * v; }
MAKE_SQUARE(float)
MAKE_SQUARE(half)

struct extent {
  packed_float2 sums;
  float greatest;
  // Without an address space, the object is in thread memory.
  thread extent& operator+=(thread const extent& o) {
    sums += o.sums;
    greatest = max(greatest, o.greatest);
    return *this;
  }
};

inline extent simd_shuffle_down(extent e, ushort delta) {
  return {simd_shuffle_down(float2(e.sums), delta), simd_shuffle_down(e.greatest, delta)};
}

template <typename T, int N = 2>
[[kernel]] void idioms(
    device const char* bytes [[buffer(0)]],
    constant size_t& width [[buffer(1)]],
    device packed_float3* y [[buffer(2)]],
    uint i [[thread_position_in_grid]],
    ushort lane [[thread_index_in_simdgroup]],
    ushort simdgroup_id [[simdgroup_index_in_threadgroup]]) {
  threadgroup struct {
    packed_float2 sums;
    float greatest;
  } slots[N];
  const size_t row = i / 32;
  device const T* x = (device const T*)bytes + row * width;
  extent e = {packed_float2(0.0f), -INFINITY};
  for (size_t j = lane; j < width; j += 32) {
    const float v = float(x[j]);
    e += {float2(v, square_float(v)), v};
  }
  for (ushort d = 16; d > 0; d /= 2) {
    e += simd_shuffle_down(e, d);
  }
  if (lane == 0) {
    slots[simdgroup_id].sums = e.sums;
    slots[simdgroup_id].greatest = e.greatest;
  }
  simdgroup_barrier(mem_flags::mem_threadgroup);
  if (lane == 1) {
    float4 sums = {0};
    sums.xy = slots[simdgroup_id].sums;
    const packed_float3 r = float3(sums.x, slots[simdgroup_id].greatest, sums.y);
    y[row] = scale * r;
    y[row].z = r.z * scale;
  }
}

typedef decltype(idioms<float>) idioms_t;
template [[host_name("idioms_float")]] kernel idioms_t idioms<float>;
template [[host_name("idioms_half")]] kernel idioms_t idioms<half>;
