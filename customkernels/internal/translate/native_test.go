package translate

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/customkernels/internal/metalstd"
	"github.com/mlxgrad/mlxgrad/customkernels/internal/msl"
)

// nativeFile parses a text without macros.
func nativeFile(t *testing.T, text string) *msl.File {
	t.Helper()
	s, err := msl.NewStructure("f.metal", text, nil)
	require.NoError(t, err)
	f, err := msl.ParseNative(s)
	require.NoError(t, err)
	return f
}

// The text of a kernel keeps the declarations that it uses, on their lines, and no other.
func TestNativeKeepsWhatAKernelUses(t *testing.T) {
	const text = `struct unused { texture2d<float> t; };
struct pair { float a, b; }; typedef struct { int v; } block_t; enum kind { plus = 1, minus };
typedef float (*function_t)(float); using real = float; constant float table[2] = {1, 2}, other = 3;
pair operator+(pair x, pair y) { return {helper(x.a), y.b}; }
unused operator+(unused x, unused y) { return x; }
float helper(float x) { return x * table[0]; }
float dead(float x) { return gone(x); }
static_assert(sizeof(pair) == 8); static_assert(sizeof(unused) == 8);
template <typename T> struct traits { static constexpr int n = 1; };
template <> struct traits<pair> { static constexpr int n = 2; }; constant constexpr int traits<pair>::n;
constant int size [[function_constant(0)]];
constant bool missing [[function_constant(1)]];
constant int queried [[function_constant(2)]];
fragment float4 shade() { return dead(0); }
kernel void a(device pair* y) { if (is_function_constant_defined(queried)) y[0] = y[0] + y[traits<pair>::n * size]; }
kernel void b(device block_t* y, device float* z) { y[0].v = minus; z[0] = missing; }
template <typename T, T (*f)(T)> kernel void c(device T* y) { y[0] = f(y[0]); }
template [[host_name("c_float")]] kernel void c<float, helper>(device float*);
`
	f := nativeFile(t, text)
	values := NewValues(ConstantValue("size", "3"))
	source := func(name string) string {
		k, arguments, err := f.Find(name)
		require.NoError(t, err)
		s, err := Native(k, arguments, values)
		require.NoError(t, err)
		if name == "b" {
			require.Equal(t, []string{"missing"}, s.Unset)
		} else {
			require.Empty(t, s.Unset)
		}
		require.Equal(t, strings.Count(text, "\n")+strings.Count(s.Text, "template [[host_name"), strings.Count(s.Text, "\n"))
		return s.Text
	}
	contains := func(text string, kept, dropped []string) {
		t.Helper()
		for _, part := range kept {
			require.Contains(t, text, part)
		}
		for _, part := range dropped {
			require.NotContains(t, text, part)
		}
	}
	a := source("a")
	contains(a, []string{"struct pair", "pair operator+", "float helper", "table[2]", "struct traits<pair>", "size = 3 ", "if (false", "sizeof(pair)"},
		[]string{"unused", "dead", "shade", "block_t", "kind", "missing", "void b", "void c", "traits<pair>::n;"})
	require.Equal(t, "kernel void a(", strings.Split(a, "\n")[14][:len("kernel void a(")])
	contains(source("b"), []string{"block_t", "enum kind", "missing = {}"}, []string{"pair", "helper", "table", "void a"})
	contains(source("c_float"), []string{"float helper", "table[2]", `template [[host_name("c")]] [[kernel]] decltype(c<float, helper>) c<float, helper>;`},
		[]string{"pair", "void a", "kind"})
}

// Shaders specialize the base of numeric_limits for their own types. A kernel that uses the limits keeps this.
func TestNativeLimitsOfOwnTypes(t *testing.T) {
	const text = `struct pair { int a; };
template <> struct _numeric_limits_impl<pair> { static constexpr pair max() { return {7}; } };
kernel void f(device int* y) { y[0] = numeric_limits<pair>::max().a; }
kernel void g(device int* y) { y[0] = 1; }
`
	file := nativeFile(t, text)
	for name, kept := range map[string]bool{"f": true, "g": false} {
		k, _, err := file.Find(name)
		require.NoError(t, err)
		s, err := Native(k, nil, NewValues())
		require.NoError(t, err)
		host, err := HostNative(s.Text, Values{}, Conversions{})
		require.NoError(t, err)
		require.Equal(t, kept, strings.Contains(host.Source, "struct numeric_limits : _numeric_limits_impl<T>"))
		require.Equal(t, kept, strings.Contains(host.Source, "_numeric_limits_impl<pair>"))
	}
}

func TestNativeHost(t *testing.T) {
	const text = `struct acc { float a, b; constexpr acc() = default; acc() threadgroup = default; };
struct own { int v; own() = default; own(int x) : v(x) {} };
namespace inner {
kernel void f(volatile coherent(device) device atomic_uint* n [[buffer(5)]], constant float x[2] [[buffer(2)]],
    threadgroup float& g, threadgroup void* p, ushort2 at [[thread_position_in_grid]], device float* y [[buffer(7)]]) {
  threadgroup float sums[4] = {0}, plain[2];
  float v[3] = {[0 ... 3 - 1] = -1.0f};
  y[0] = v[0] + sums[0];
}
}
`
	host, err := HostNative(text, Values{Sizes: map[string]int{"p": 64}}, Conversions{})
	require.NoError(t, err)
	require.Equal(t, []HostBuffer{{"x", "float", false, false}, {"n", "atomic_uint", false, true}, {"y", "float", false, true}}, host.Buffers)
	require.Equal(t, []string{"g", "p"}, host.ThreadgroupArguments)
	require.Equal(t, 2, host.Variables)
	for _, part := range []string{
		"#include \"metal_native.h\"\n", "mlxg::pointer_argument{buffers[1]},\n      mlxg::pointer_argument{buffers[0]},\n      " +
			"mlxg::threadgroup_reference<0, 2>{},\n      mlxg::threadgroup_pointer<64, 3>{},\n      ushort2(p.thread_position_in_grid.xy)",
		"mlxg::threadgroup_variable<mlxg_tg_type_0, 0, true>()", "mlxg::threadgroup_variable<mlxg_tg_type_1, 1>()",
		"for (auto& mlxg_element : v) mlxg_element = - 1.0f;", "own() = default", "namespace inner { static void mlxg_call",
		"metal::mlxg_shader::inner::mlxg_call(buffers, p)",
	} {
		require.Contains(t, host.Source, part)
	}
	for _, part := range []string{"acc() = default", "coherent", "[0 ..."} {
		require.NotContains(t, host.Source, part)
	}
	_, err = Host(strings.Replace(text, "threadgroup float& g, threadgroup void* p, ", "", 1), Conversions{})
	require.ErrorContains(t, err, "the threadgroup variable sums cannot have an initializer")
	_, err = HostNative("kernel void f(device float* y) { threadgroup float s[2] = {0, 1}; }", Values{}, Conversions{})
	require.ErrorContains(t, err, "1:57: the threadgroup variable s cannot have an initializer other than zeros")
	_, err = HostNative("struct s { bool operator>(s o) { return true; } };\nkernel void f(device float* y) {}", Values{}, Conversions{})
	require.NoError(t, err)
}

// The header with MLX's declarations is for texts that use them and do not declare them.
func TestNativeHeader(t *testing.T) {
	for text, header := range map[string]string{
		"kernel void f(device float* y) {}":                                            "metal_native.h",
		"kernel void f(device float16_t* y) {}":                                        "metal_host.h",
		"typedef half float16_t;\nkernel void f(device float16_t* y) {}":               "metal_native.h",
		"struct complex64_t { float r, i; };\nkernel void f(device complex64_t* y) {}": "metal_native.h",
	} {
		host, err := HostNative(text, Values{}, Conversions{})
		require.NoError(t, err)
		require.True(t, strings.HasPrefix(host.Source, "#include \""+header+"\"\n"), text)
	}
}

// Only a text with textures or samplers includes their header.
func TestTextureHeader(t *testing.T) {
	for text, header := range map[string]string{
		"kernel void f(device float* y) { y[0] = 1; }":                                 metalstd.NativeHeader,
		"kernel void f(texture2d<float> t, device float* y) { y[0] = t.get_width(); }": metalstd.TextureHeader,
		"kernel void f(device float* y) { constexpr sampler s; y[0] = 1; }":            metalstd.TextureHeader,
	} {
		host, err := HostNative(text, Values{}, Conversions{})
		require.NoError(t, err)
		require.Equal(t, header, metalstd.HeaderOf(host.Source), text)
	}
}
