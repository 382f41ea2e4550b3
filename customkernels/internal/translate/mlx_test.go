package translate

import (
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/customkernels/internal/msl"
)

// Text returns the same bytes as MLX, which generated the samples.
func TestTextEqualsMLX(t *testing.T) {
	want, err := os.ReadFile("testdata/mlx_sample.metal")
	require.NoError(t, err)
	m := MLXSource{
		InputNames: []string{"x", "w", "dims", "s0"}, OutputNames: []string{"dx", "p"},
		TemplateNames: []string{"T", "N", "B"},
		Header:        "template <typename T> T helper(const device T* x) { return x[0]; }\n",
		Body: "  uint row = threadgroup_position_in_grid.x; uint lid = thread_position_in_threadgroup.x;\n  " +
			"threadgroup float buf[32];\n  dx[row] = x[row]*T(s0);\n",
	}
	require.Equal(t, string(want), m.Text("rms_dx",
		[]MLXTemplateArgument{{"typename", "float16_t"}, {"int", "3"}, {"bool", "1"}},
		[]MLXInput{
			{Type: "float16_t"},
			{Type: "bfloat16_t", Small: true},
			{Type: "int32_t"},
			{Type: "float", Scalar: true, Small: true},
		},
		[]string{"float16_t", "float"}))

	want, err = os.ReadFile("testdata/mlx_atomic.metal")
	require.NoError(t, err)
	m = MLXSource{
		InputNames: []string{"x"}, OutputNames: []string{"h", "y"}, Header: "#define A 1\n", AtomicOutputs: true,
		Body: "  uint i = thread_position_in_grid.x; // x_shape x_strides x_ndim\n  " +
			"atomic_fetch_add_explicit(&h[0], 1u, memory_order_relaxed);",
	}
	require.Equal(t, string(want), m.Text("hist", nil, []MLXInput{{Type: "float16_t"}}, []string{"uint32_t", "float"}))
}

func TestMLX(t *testing.T) {
	tests := []struct {
		name       string
		parameters string
		body       string // " y[0] = 1; " if empty
		prologue   string
		epilogue   string
		inputs     []string
		outputs    []string
		cast       []bool
		template   string
		names      []string
		atomic     bool
		options    []Option
		unsized    []string
	}{
		{
			name: "nothing to bind", parameters: "device float* y, device const half* x, uint3 " +
				"thread_position_in_grid [[thread_position_in_grid]]",
			inputs: []string{"x"}, outputs: []string{"y"}, cast: []bool{false},
		},
		{
			name: "positions", parameters: "device float* y, uint3 a [[threadgroup_position_in_grid]], uint b " +
				"[[thread_position_in_grid]], uint2 c [[threads_per_grid]], uint d [[thread_index_in_simdgroup]]",
			prologue: "uint3 a = threadgroup_position_in_grid; uint b = thread_position_in_grid.x; uint2 c = " +
				"threads_per_grid.xy; uint d = thread_index_in_simdgroup;",
			outputs: []string{"y"},
		},
		{
			name: "short positions", parameters: "device float* y, ushort a [[thread_index_in_simdgroup]], ushort2 " +
				"b [[thread_position_in_threadgroup]], ushort3 c [[grid_size]]",
			prologue: "ushort a = ushort(thread_index_in_simdgroup); ushort2 b = " +
				"ushort2(thread_position_in_threadgroup.xy); ushort3 c = ushort3(grid_size);",
			outputs: []string{"y"},
		},
		{
			name:       "a position under its own name with another type",
			parameters: "device float* y, uint thread_position_in_grid [[thread_position_in_grid]]",
			prologue: "const uint3 mlxg_thread_position_in_grid = thread_position_in_grid; { uint " +
				"thread_position_in_grid = mlxg_thread_position_in_grid.x;",
			epilogue: "}", outputs: []string{"y"},
		},
		{
			name:       "a position under another's name",
			parameters: "device float* y, uint3 grid_size [[threads_per_grid]]",
			prologue:   "const uint3 mlxg_grid_size = threads_per_grid; { uint3 grid_size = mlxg_grid_size;",
			epilogue:   "}", outputs: []string{"y"},
		},
		{
			name: "a variable under a position's name", parameters: "device float* y",
			body:     "int grid_size = 1; y[0] = grid_size;",
			prologue: "{", epilogue: "}", outputs: []string{"y"},
		},
		{
			name: "order of slots", parameters: "device float* b [[buffer(3)]], device float* a [[buffer(1)]], " +
				"constant float& d [[buffer(2)]], device const int* c [[buffer(0)]]",
			inputs: []string{"c", "d"}, outputs: []string{"a", "b"}, cast: []bool{false, false},
		},
		{
			name: "other element types", parameters: "device float4* y, device const float4* x, constant P& p, " +
				"constant half& s, const device uint& u",
			prologue: "const device float4* x = reinterpret_cast<const device float4*>(mlxg_x); " +
				"decltype(*mlxg_cast_const<P>(mlxg_p)) p = *mlxg_cast_const<P>(mlxg_p); " +
				"const device uint& u = *reinterpret_cast<const device uint*>(mlxg_u); device float4* y = " +
				"reinterpret_cast<device float4*>(mlxg_y);",
			inputs: []string{"mlxg_x", "mlxg_p", "s", "mlxg_u"}, outputs: []string{"mlxg_y"},
			cast: []bool{true, true, false, true},
		},
		{
			name: "constant arguments of helpers",
			parameters: "device float* y, constant float* a, constant uint& n, constant P& p, constant float* " +
				"b, constant uint& m",
			body: "y[0] = f(a, n) + g(p) + b[n] + h(b[0], m + 1);",
			prologue: "auto a = mlxg_cast_const<float>(mlxg_a); constant uint& n = const_cast<constant " +
				"uint&>(mlxg_n); decltype(*mlxg_cast_const<P>(mlxg_p)) p = *mlxg_cast_const<P>(mlxg_p);",
			inputs: []string{"mlxg_a", "mlxg_n", "mlxg_p", "b", "m"}, outputs: []string{"y"},
			cast: []bool{false, false, true, false, false},
		},
		{
			name: "volatile", parameters: "volatile device uint* a, device volatile float2* b, volatile device int& " +
				"c, const volatile device float* x",
			prologue: "volatile device uint* a = mlxg_a; volatile device float2* b = reinterpret_cast<volatile " +
				"device float2*>(mlxg_b); volatile device int& c = *mlxg_c;",
			inputs: []string{"x"}, outputs: []string{"mlxg_a", "mlxg_b", "mlxg_c"}, cast: []bool{false},
		},
		{
			name: "reference output", parameters: "device float& y", prologue: "device float& y = *mlxg_y;",
			outputs: []string{"mlxg_y"},
		},
		{
			name: "atomic outputs", parameters: "device atomic_uint* n, device float* y, device atomic<float>& s, " +
				"device half4& h",
			prologue: "device float* y = reinterpret_cast<device float*>(mlxg_y); device atomic<float>& s = " +
				"*mlxg_s; device half4& h = *reinterpret_cast<device half4*>(mlxg_h);",
			outputs: []string{"n", "mlxg_y", "mlxg_s", "mlxg_h"}, atomic: true,
		},
		{
			name: "templates", parameters: "device T* y, device const T* x, constant vec<T, 2>* v",
			template: "typename T, int N, bool B, uint U, ushort S = 2",
			prologue: "constexpr uint U = mlxg_U; constexpr ushort S = mlxg_S; auto v = mlxg_cast_const<vec<T, " +
				"2>>(mlxg_v);",
			inputs: []string{"x", "mlxg_v"}, outputs: []string{"y"}, cast: []bool{false, true},
			names: []string{"T", "N", "B", "mlxg_U", "mlxg_S"},
		},
		{
			name: "MLX's own arguments", parameters: "device float* y, device const float* x, constant int* " +
				"x_shape, constant int64_t* x_strides, constant int& x_ndim, uint i [[thread_position_in_grid]]",
			body:     "y[i] = x_shape[0] + x_strides[1] + x_ndim;",
			prologue: "uint i = thread_position_in_grid.x;", inputs: []string{"x"}, outputs: []string{"y"},
			cast: []bool{false},
		},
		{
			name:       "MLX's own arguments without a position",
			parameters: "device float* y, device const float* x, constant int* x_shape",
			body:       "y[0] = x_shape[0];",
			prologue:   "/* thread_index_in_threadgroup */", inputs: []string{"x"}, outputs: []string{"y"},
			cast: []bool{false},
		},
		{
			name: "MLX's own arguments of a cast input",
			parameters: "device float* y, device const float2* x, constant int* x_shape, constant int& x_ndim, " +
				"uint i [[thread_position_in_grid]]",
			prologue: "const device float2* x = reinterpret_cast<const device float2*>(mlxg_x); const constant int* " +
				"x_shape = mlxg_x_shape; const constant int& x_ndim = mlxg_x_ndim; uint i = thread_position_in_grid.x;",
			inputs: []string{"mlxg_x"}, outputs: []string{"y"}, cast: []bool{true},
		},
		{
			name:       "a variable that MLX would declare",
			parameters: "device float* y, device const float* x, constant float& s",
			body:       "int x_shape = 4; float s_ndim = s; y[0] = x[x_shape];",
			prologue:   "auto x = mlxg_x; const constant float& s = mlxg_s;", inputs: []string{"mlxg_x", "mlxg_s"},
			outputs: []string{"y"}, cast: []bool{false, false},
		},
		{
			name: "a buffer with a position's name",
			parameters: "device float* grid_origin, device const float* grid_size, uint i " +
				"[[thread_position_in_grid]]",
			prologue: "auto grid_size = mlxg_grid_size; device float* grid_origin = mlxg_grid_origin; uint i = " +
				"thread_position_in_grid.x;",
			inputs: []string{"mlxg_grid_size"}, outputs: []string{"mlxg_grid_origin"}, cast: []bool{false},
		},
		{
			name: "threadgroup arguments", parameters: "device float* y, threadgroup float* a [[threadgroup(0)]], " +
				"threadgroup half4* b",
			options:  []Option{ThreadgroupSize("b", 64)},
			prologue: "threadgroup half4 mlxg_b[64]; threadgroup half4* b = mlxg_b;", outputs: []string{"y"},
			unsized: []string{"a"},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if test.body == "" {
				test.body = " y[0] = 1; "
			}
			src := "struct P { float a; };\n"
			if test.template != "" {
				src += "template <" + test.template + ">\n"
			}
			src += "kernel void f(" + test.parameters + ")\n{" + test.body + "}\n"
			file, err := parseText(src)
			require.NoError(t, err)
			m := MLX(file.Kernels[0], test.options...)
			if test.prologue != "" {
				test.prologue = "  " + test.prologue
			}
			require.Equal(t, test.prologue+test.body+test.epilogue, m.Body)
			require.Equal(t, len(test.prologue), m.Prologue)
			require.Equal(t, test.inputs, m.InputNames)
			require.Equal(t, test.outputs, m.OutputNames)
			require.Equal(t, test.cast, m.Cast)
			require.Equal(t, test.names, m.TemplateNames)
			require.Equal(t, test.atomic, m.AtomicOutputs)
			require.Equal(t, test.unsized, m.Unsized)
			header := "struct P { float a; };\n"
			if strings.Contains(m.Body, "mlxg_cast_const") {
				header += castConst
			}
			require.Equal(t, header, m.Header)
		})
	}
}

func TestMLXNamespaces(t *testing.T) {
	file, err := parseText("namespace a {\nfloat g();\nnamespace b {\nkernel void f(device float* y) { y[0] = g(); " +
		"}\n}\nfloat g() { return 1; }\n}\n")
	require.NoError(t, err)
	m := MLX(file.Kernels[0])
	require.Equal(t, "  using namespace a; using namespace a::b; y[0] = g(); ", m.Body)
	require.Equal(t, "namespace a {\nfloat g();\nnamespace b {\n\n}\nfloat g() { return 1; }\n}\n", m.Header)
}

// A function constant may stay undefined if the text queries whether it has a value.
func TestMLXResolvesQueriesOfConstants(t *testing.T) {
	files := fstest.MapFS{"f.metal": {Data: []byte("constant float a [[function_constant(0)]];\nconstant bool b " +
		"[[function_constant(1)]];\n" +
		"constant float c = is_function_constant_defined(a) ? a : 2;\n" +
		"kernel void f(device float* y [[buffer(0)]]) { y[0] = is_function_constant_defined( b ) && b ? c : 1; }\n")}}
	file, err := msl.Parse(files, "f.metal")
	require.NoError(t, err)
	m := MLX(file.Kernels[0], ConstantValue("b", "true"))
	require.Empty(t, m.Unset)
	require.Equal(t, "constant float a = float(0);\nconstant bool b = true;\nconstant float c = false ? a : 2;\n",
		m.Header)
	require.Contains(t, m.Body, "y[0] = true && b ? c : 1;")
}

func TestMLXGivesFunctionConstantsTheirValues(t *testing.T) {
	file, err := parseText("constant bool has_w [[function_constant(20)]];\n  constant int n " +
		"[[function_constant(0)]];\n" +
		"kernel void f(device float* y) { if (has_w) y[0] = n; }\n")
	require.NoError(t, err)
	k := file.Kernels[0]
	require.Equal(t, []string{"has_w", "n"}, MLX(k).Unset)
	m := MLX(k, ConstantValue("n", "16"), ConstantValue("has_w", "true"))
	require.Empty(t, m.Unset)
	require.Equal(t, "constant bool has_w = true;\n  constant int n = 16;\n", m.Header)
}
