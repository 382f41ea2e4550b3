package translate

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/customkernels/internal/msl"
)

// In the given lines, both values of a conditional operator are converted to a common type.
func TestHostConditionals(t *testing.T) {
	body := "half h = x[0] > 0 ? x[0] : 0;\n" +
		"y[0] = f(x[0] > 1 ? (device const half*)x : x + 1, n < 3 ? pick<1, 2>(h) : n > 4 ? -1 : h * 2, 1);\n" +
		"y[1] = n > 0 ? 1 : 2; case_label: y[2] = 0;\n"
	text := "[[kernel]] void custom_kernel_f(\n  device float* y [[buffer(0)]]) {\n" + body + "}\n"
	plain, err := Host(text, Conversions{})
	require.NoError(t, err)
	host, err := Host(text, Conversions{Conditionals: []int{3, 4}})
	require.NoError(t, err)
	lines := strings.Split(host.Source, "\n")
	require.Equal(t, "half h = x[0] > 0 ? (::mlxg::common_operand<decltype(( x [ 0 ])), decltype(( 0))>)(x[0]) : "+
		"(::mlxg::common_operand<decltype(( 0)), decltype(( x [ 0 ]))>)(0);", lines[3])
	inner := "(::mlxg::common_operand<decltype(( - 1)), decltype(( h * 2))>)("
	last := "(::mlxg::common_operand<decltype(( h * 2)), decltype(( - 1))>)("
	nested := " n > 4 ? " + inner + " - 1) : " + last + " h * 2)"
	first := " pick < 1 , 2 > ( h )"
	require.Equal(t, "y[0] = f(x[0] > 1 ? (::mlxg::common_operand<decltype(( (  const half * ) x)), decltype(( x + "+
		"1))>)((       const half*)x) : "+
		"(::mlxg::common_operand<decltype(( x + 1)), decltype(( (  const half * ) x))>)(x + 1), n < 3 ? "+
		"(::mlxg::common_operand<decltype(("+first+")), decltype(("+nested+"))>)(pick<1, 2>(h)) : "+
		"(::mlxg::common_operand<decltype(("+nested+")), decltype(("+first+"))>)(n > 4 ? "+inner+"-1) : "+last+
		"h * 2)), 1);", lines[4])
	unchanged := strings.Split(plain.Source, "\n")
	require.Equal(t, unchanged[5:], lines[5:])
}

// A shader's names hide names of the C library.
func TestHostWrapper(t *testing.T) {
	kernel := "[[kernel]] void f(device float* y [[buffer(0)]]) {\n  y[0] = 1;\n}\n"
	tests := []struct {
		name, text string
		line       int // on which the namespace opens, 0 for none
	}{
		{"plain", kernel, 2},
		{"comment", "// a\n" + kernel, 2},
		{"directives first", "#define A 1\n#define B \\\n 2\n" + kernel, 5},
		{"comment between directives", "#define A 1\n/* b\n */\n#ifdef A\nint a;\n#endif\n" + kernel, 3},
		{"conditional about the first code", "#ifdef A\nint a;\n#endif\n" + kernel, 0},
		{"conditional without code", "#ifdef A\n#define B\n#endif\n" + kernel, 5},
		{"namespace metal", "namespace metal { inline float g() { return 1; } }\n" + kernel, 0},
		{"a global name", "int a;\nint g() { return ::a; }\n" + kernel, 0},
		{"the global name metal", "int g() { return ::metal::abs(1); }\n" + kernel, 2},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			host, err := Host(test.text, Conversions{})
			require.NoError(t, err)
			at := strings.Index(host.Source, "namespace metal { namespace mlxg_shader {")
			if test.line == 0 {
				require.Negative(t, at)
				require.NotContains(t, host.Source, "mlxg_shader")
				return
			}
			require.Equal(t, test.line, 1+strings.Count(host.Source[:at], "\n"))
		})
	}
}

// A text that depends on being in the global namespace is no CUDA. The error names the place.
func TestCUDARefusesGlobalNames(t *testing.T) {
	const kernel = "[[kernel]] void custom_kernel_f(\n  device float* y [[buffer(0)]]) { y[0] = 1; }\n"
	for text, line := range map[string]int{
		"int a;\nnamespace metal { inline float g() { return 1; } }\n" + kernel: 2,
		"int a;\n\nint g() { return ::a; }\n" + kernel:                          3,
	} {
		_, err := CUDA(text, false)
		require.ErrorContains(t, err, "the shader must be in the global namespace")
		var at *msl.Error
		require.ErrorAs(t, err, &at)
		require.Equal(t, line, at.Line, text)
	}
}

// The entry calls the kernel of the last instantiation, or the last kernel. MLX's own headers have several kernels.
func TestHostChoosesTheInstantiatedKernel(t *testing.T) {
	const kernels = `template <typename T>
[[kernel]] void first(device T* y [[buffer(0)]]) { y[0] = T(1); }
template <typename T>
[[kernel]] void second(device T* y [[buffer(0)]]) { y[0] = T(2); }
`
	source, err := Host(kernels+`template [[host_name("f")]] [[kernel]] decltype(first<float>) first<float>;`+"\n", Conversions{})
	require.NoError(t, err)
	require.Equal(t, "first", source.KernelName)
	require.Contains(t, source.Source, "first<float>(")

	source, err = Host("[[kernel]] void a(device float* y [[buffer(0)]]) {}\n[[kernel]] void b(device float* y "+
		"[[buffer(0)]]) {}\n", Conversions{})
	require.NoError(t, err)
	require.Equal(t, "b", source.KernelName)
}

// A kernel may leave out buffer numbers. The entry keeps an empty place for each.
func TestHostKeepsThePlacesOfMissingBuffers(t *testing.T) {
	source, err := Host("[[kernel]] void f(const device float* x [[buffer(1)]], device float* y [[buffer(3)]]) { "+
		"y[0] = x[0]; }\n", Conversions{})
	require.NoError(t, err)
	require.Len(t, source.Buffers, 4)
	require.Equal(t, []string{"", "x", "", "y"}, []string{
		source.Buffers[0].Name, source.Buffers[1].Name, source.Buffers[2].Name, source.Buffers[3].Name,
	})
	require.Contains(t, source.Source, "buffers[3]")
}
