#include "metal_host.h"
// Each check that holds sets one of the first n bytes of ok to 1.
struct options { float4 scale; uint2 shape; half eps; };
template <typename T, int N> T total(vec<T, N> v) { T s = v[0]; for (int i = 1; i < N; ++i) s += v[i]; return s; }
constexpr float2 corner = float2(1, 2);
 void custom_kernel_vectors(
  const float* x ,
  uchar* ok ,
  uint3 thread_position_in_grid ) {
  if (thread_position_in_grid.x != 0) return;
  int n = 0;
#define CHECK(...) ok[n++] = (__VA_ARGS__) ? 1 : 2
  const float4 v = *reinterpret_cast<const float4*>(x);  // 1 2 3 4
  CHECK(v.x == 1 && v.y == 2 && v.z == 3 && v.w == 4 && v.r == 1 && v.a == 4 && v[2] == 3);
  CHECK(all(v.xy == float2(1, 2)) && all(v.zyx == float3(3, 2, 1)) && all(v.wwww == float4(4)) && all(v.rgba == v) && all(v.bg == float2(3, 2)));
  float4 u = 0;
  u.xy = {3, 4}; CHECK(all(u == float4(3, 4, 0, 0))); u.zyx = {v.z, 2.0f, half(1)}; CHECK(all(u == float4(1, 2, 3, 0))); u = 0;
  u.xy = v.zw; CHECK(all(u == float4(3, 4, 0, 0)));
  u.wz = v.xy; CHECK(all(u == float4(3, 4, 2, 1)));
  u.xy = u.yx; CHECK(all(u == float4(4, 3, 2, 1)));
  u.xyz += 1; CHECK(all(u == float4(5, 4, 3, 1)));
  u.yw *= v.xy; CHECK(all(u == float4(5, 4, 3, 2)));
  u.x = 9; u[3] = 7; CHECK(all(u == float4(9, 4, 3, 7)));
  float4 t; t.xyzw = u.xyzw; t.xy = u.xy; CHECK(all(t == u));
  CHECK(all(float4(v.xy, 5, 6) == float4(1, 2, 5, 6)) && all(float4(5, v.yz, 6) == float4(5, 2, 3, 6)) && all(float4(v.xy, v.xy) == float4(1, 2, 1, 2)) && all(float4(v.xyz, 8) == float4(1, 2, 3, 8)));
  CHECK(all(float3(1, v.zw) == float3(1, 3, 4)) && all(float3(7) == float3(7, 7, 7)));
  CHECK(all(v * 2 == 2 * v) && all(v + v == v * 2.0f) && all(-v + v == 0) && all(v - 1 == float4(0, 1, 2, 3)) && all(v / 2 == float4(.5, 1, 1.5, 2)));
  CHECK(all(v.xy + v.zw == float2(4, 6)) && all(v.xy * 2 == float2(2, 4)) && all(2 * v.xy == float2(2, 4)) && all(v.xyz == v.xyz));
  CHECK(any(v > 3) && !all(v > 3) && !any(v > 4) && all((v > 2) == bool4(false, false, true, true)) && all(!(v > 2) == (v <= 2)) && all((v > 1) && (v < 3) == bool4(false, true, false, false)) == false);
  CHECK(total(v) == 10 && total(float2(v.xy)) == 3 && total(uint3(1, 2, 3)) == 6);
  const int4 i = int4(v); CHECK(all(i % 2 == int4(1, 0, 1, 0)) && all((i << 1) == i * 2) && all((i & 1) == i % 2) && all(~i == -i - 1) && all((i ^ i) == 0));
  const half4 h = half4(v); CHECK(all(h + h == half4(2, 4, 6, 8)) && all(float4(h) == v) && sizeof(h) == 8 && h.y == 2.0h);
  const uchar4 c = uchar4(250, 251, 252, 253); CHECK(all(c + uchar(10) == uchar4(4, 5, 6, 7)) && as_type<uint>(c) == 0xfdfcfbfau);
  const bfloat2 b = bfloat2(1.5f, -2); CHECK(b.x * b.y == bfloat(-3) && as_type<uint>(b) == 0xc0003fc0u);
  CHECK(sizeof(float2) == 8 && sizeof(float3) == 16 && sizeof(float4) == 16 && sizeof(half2) == 4 && sizeof(half3) == 8 && sizeof(char3) == 4 && sizeof(ulong4) == 32 && sizeof(packed_float3) == 12 && sizeof(bool4) == 4 && alignof(float3) == 16);
  packed_float3 p = float3(1, 2, 3); p[1] = 5; const float3 q = p; CHECK(all(q == float3(1, 5, 3)) && all(float3(p) * 2 == float3(2, 10, 6)));
  p.x = 7; p.yz *= 2; p += float3(1); p /= 2; CHECK(p.r == 4 && all(p.yz == float2(5.5, 3.5)) && all(p + p == 2 * p) && all(-p * 2 + p == float3(-4, -5.5, -3.5)) && all((p > 4) == bool3(false, true, false)));
  CHECK(all(float4(p, 1) == float4(4, 5.5, 3.5, 1)) && dot(p, float3(2)) == 26 && length(packed_float2(3, 4)) == 5 && all(max(p, 4) == float3(4, 5.5, 4)) && all(float3(packed_half3(half3(1, 2, 3))) == v.xyz) && sizeof(packed_half3) == 6 && alignof(packed_uchar4) == 1 && packed_uchar4(uchar4(1, 2, 3, 4))[3] == 4);
  CHECK(pack_float_to_unorm4x8(float4(1, 0, 2, -1)) == 0x00ff00ffu && pack_float_to_snorm2x16(float2(-1, 1)) == 0x7fff8001u && all(unpack_unorm4x8_to_float(0xff0000ffu) == float4(1, 0, 0, 1)) && all(unpack_snorm4x8_to_half(0x7f800081u) == half4(-1, 0, -1, 1)) && pack_half_to_unorm2x16(half2(1, 0)) == 0xffffu);
  CHECK(all(reflect(float3(1, -1, 0), float3(0, 1, 0)) == float3(1, 1, 0)) && all(refract(float2(0, -1), float2(0, 1), 1.0f) == float2(0, -1)) && all(faceforward(float2(0, 1), float2(0, 1), float2(0, 1)) == float2(0, -1)) && fmedian3(3.0f, 1.0f, 2.0f) == 2 && all(fast::normalize(float2(0, 2)) == float2(0, 1)) && precise::length(float2(3, 4)) == 5);
  CHECK(is_same_v<decltype(precise::exp(half(1))), float> && is_same_v<decltype(fast::pow(half(1), half(2))), float> && is_same_v<decltype(precise::sqrt(half2(1))), half2> && is_scalar<half>::value && is_pointer<float*>::value && is_class_v<options>);
  CHECK(!isnormal(0x1p-20h) && isnormal(0x1p-20f) && isnormal(0x1p-14h) && numeric_limits<half>::digits10 == 3 && numeric_limits<float>::digits10 == 6 && numeric_limits<int>::digits10 == 9 && !numeric_limits<int>::has_infinity && M_PI_H == 3.140625h && isinf(HUGE_VALH));
  CHECK(dot(v.xyz, float3(1, 1, 1)) == 6 && dot(v, v) == 30 && length(float2(3, 4)) == 5 && distance(float2(1, 1), float2(4, 5)) == 5 && all(cross(float3(1, 0, 0), float3(0, 1, 0)) == float3(0, 0, 1)) && all(normalize(float2(0, 2)) == float2(0, 1)));
  CHECK(all(max(v, 2) == float4(2, 2, 3, 4)) && all(min(v, v.wzyx) == float4(1, 2, 2, 1)) && all(clamp(v, 2, 3) == float4(2, 2, 3, 3)) && all(abs(-i) == i) && all(fma(v, v, v) == v * v + v) && all(sqrt(v * v) == v) && all(mix(v, v, 0.5f) == v));
  CHECK(all(select(v, -v, v > 2) == float4(1, 2, -3, -4)) && select(1, 2, true) == 2 && all(select(v, v * 2, bool4(true)) == 2 * v));
  CHECK(all(isnan(float2(NAN, 1)) == bool2(true, false)) && isinf(INFINITY) && !isfinite(-INFINITY) && isnan(half(NAN)) && signbit(-0.0f) && !isnan(bfloat(1)));
  CHECK(all(floor(float2(1.5, -1.5)) == float2(1, -2)) && rint(2.5f) == 2 && round(2.5f) == 3 && trunc(-2.5f) == -2 && fract(1.25f) == 0.25f && sign(-3.0f) == -1 && all(sign(float2(-0.5, 2)) == float2(-1, 1)) && copysign(3.0f, -1.0f) == -3);
  CHECK(popcount(0xf0u) == 4 && clz(1u) == 31 && clz(0u) == 32 && ctz(8u) == 3 && ctz(0u) == 32 && clz(ushort(1)) == 15 && reverse_bits(1u) == 0x80000000u && rotate(0x80000001u, 4u) == 0x18u && mulhi(0x80000000u, 4u) == 2 && mulhi(-1, 1) == -1 && mulhi(1l << 62, 4l) == 1);
  CHECK(madsat(1500000000, 3, 1) == INT_MAX && madsat(1500000000u, 3u, 1u) == UINT_MAX && madsat(-1500000000, 3, 1) == INT_MIN && madsat(46341, 46341, -5000) == 2147483281 && madsat(7, -6, 2) == -40 && madsat(0x10000u, 0xffffu, 0xffffu) == UINT_MAX && madsat(0x10000u, 0xffffu, 0x10000u) == UINT_MAX);
  CHECK(madsat(char(100), char(2), char(-80)) == 120 && madsat(char(-100), char(2), char(50)) == -128 && madsat(ushort(256), ushort(256), ushort(0)) == 65535 && madsat(LONG_MAX, 2l, LONG_MIN) == LONG_MAX - 1 && madsat(LONG_MIN, 1l, -1l) == LONG_MIN && madsat(LONG_MIN, -1l, -1l) == LONG_MAX && madsat(ULONG_MAX, 1ul, 1ul) == ULONG_MAX && all(madsat(int2(1, 1500000000), int2(2, 3), 4) == int2(6, INT_MAX)));
  CHECK(all(uint4(5) << uint4(32, 33, 34, 3) == uint4(5, 10, 20, 40)) && all(uchar4(3) << uchar4(9) == uchar4(6)) && (uint2(7) << 33u).x == 14 && all(int2(-8, 8) >> 33 == int2(-4, 4)) && all(ushort2(1) << ushort2(17) == ushort2(2)));
  CHECK(extract_bits(0xabcdu, 4, 8) == 0xbc && insert_bits(0u, 0xffu, 4, 8) == 0xff0 && addsat(uchar(250), uchar(10)) == 255 && subsat(5u, 7u) == 0 && addsat(INT_MAX, 1) == INT_MAX && absdiff(3, 7) == 4 && absdiff(INT_MAX, INT_MIN) == UINT_MAX && absdiff(char(100), char(-100)) == 200 && all(absdiff(int2(-1, 5), 3) == uint2(4, 2)) && is_same_v<decltype(absdiff(short2(1), short2(2))), ushort2> && hadd(7u, 4u) == 5 && rhadd(7u, 4u) == 6 && all(popcount(uint2(3, 7)) == uint2(2, 3)));
  options o; o.scale = v; o.shape = uint2(3, 4); o.eps = 1e-3h; options o2; o2 = o; CHECK(all(o2.scale == v) && o2.shape.y == 4 && o2.eps == o.eps);
  float4 w = v; w = w.wzyx; CHECK(all(w == float4(4, 3, 2, 1))); w++; CHECK(w.x == 5);
  CHECK(max(3, 4) == 4 && max(1.0f, 2) == 2 && min(half(1), half(2)) == 1 && is_same_v<decltype(max(half(1), half(2))), half> && is_same_v<decltype(exp(half(1))), half> && is_same_v<decltype(exp(1.0f)), float> && is_same_v<decltype(max(v, 0.0)), float4> && is_same_v<decltype(max(1u, 2u)), uint>);
  CHECK(numeric_limits<half>::max() == 65504 && numeric_limits<int>::max() == INT_MAX && numeric_limits<int>::min() == INT_MIN && numeric_limits<uint>::max() == UINT_MAX && numeric_limits<long>::lowest() == LONG_MIN && numeric_limits<uchar>::max() == 255 && numeric_limits<float>::infinity() == INFINITY && numeric_limits<bfloat>::epsilon() == 0.0078125f && isnan(numeric_limits<float>::quiet_NaN()));
  CHECK(Limits<float>::max == INFINITY && Limits<half>::finite_max == 65504 && Limits<int>::min == INT_MIN && Limits<bool>::max && Limits<uint8_t>::max == 255);
  float2x2 m = float2x2(float2(1, 2), float2(3, 4)); CHECK(all(m * float2(1, 1) == float2(4, 6)) && all(float2(1, 1) * m == float2(3, 7)) && determinant(m) == -2 && all((m * m)[0] == float2(7, 10)) && all(transpose(m)[0] == float2(1, 3)) && all((m + m)[1] == float2(6, 8)));
  const float2x2 l = {{1, 2}, {3, 4}}; float2x2 k(1, 2, 3, 4); k *= 2; CHECK(all(l[1] == m[1]) && all(k[1] == float2(6, 8)) && all((-l)[0] == float2(-1, -2)) && all((k * m)[0] == 2 * (m * m)[0])); k *= m; CHECK(k[0].x == 14);
  CHECK(corner.y == 2 && ceildiv(7, 2) == 4 && INT_MAX == 2147483647 && M_PI_F > 3.14f);
  complex64_t z = complex64_t(1, 2) * complex64_t(3, 4); CHECK(z.real == -5 && z.imag == 10 && sizeof(z) == 8);
  int e; CHECK(frexp(8.0f, e) == 0.5f && e == 4 && ldexp(0.5f, 4) == 8 && ilogb(9.0f) == 3); float ip; CHECK(modf(-2.5f, ip) == -0.5f && ip == -2);
  CHECK(saturate(2.0f) == 1 && saturate(-1.0f) == 0 && step(1.0f, 2.0f) == 1 && smoothstep(0.0f, 1.0f, 0.5f) == 0.5f && powr(2.0f, 3.0f) == 8 && exp10(2.0f) == 100 && metal::precise::rsqrt(4.0f) == 0.5f && metal::fast::exp2(3.0f) == 8 && fmod(5.5f, 2.0f) == 1.5f && median3(3, 1, 2) == 2 && min3(3, 1, 2) == 1);
  CHECK(all(float3(half3(1, -2, 65504)) == float3(1, -2, 65504)) && all(half2(float2(0.1f, 1e9f)) == half2(half(0.1f), half(INFINITY))) && all(half3(float3(1, 2, 3)) == half3(1, 2, 3)) && all(float4(half4(float4(1, 2, 3, 4))) == v));
  array<float, 3> arr = {1, 2, 3}; CHECK(arr[1] == 2 && arr.size() == 3);
  ok[n] = 0;
}
namespace { void mlxg_invoke(void* const* buffers, const mlxg::thread_position& p) {
 custom_kernel_vectors(static_cast<const float*>(buffers[0]), static_cast<uchar*>(buffers[1]), p.thread_position_in_grid); } }
extern "C" const mlxg::entry mlxgrad_entry = { "custom_kernel_vectors", 2, mlxg_invoke };
