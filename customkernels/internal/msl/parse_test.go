package msl

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

// parseFile parses a file of testdata.
func parseFile(t *testing.T, name string) (*File, string) {
	t.Helper()
	src, err := os.ReadFile(filepath.Join("testdata", name))
	require.NoError(t, err)
	file, err := Parse(os.DirFS("testdata"), name)
	require.NoError(t, err)
	return file, string(src)
}

// parseText parses a text as a file.
func parseText(text string) (*File, error) {
	return Parse(fstest.MapFS{"f.metal": {Data: []byte(text)}}, "f.metal")
}

func TestParseExample(t *testing.T) {
	file, src := parseFile(t, "example.metal")
	require.Len(t, file.Kernels, 2)

	k, err := file.Kernel("norm")
	require.NoError(t, err)
	require.Equal(t, "example.metal:31:57", k.Pos.String())
	require.Equal(t, 256, k.MaxThreads)
	require.Equal(t, []TemplateParameter{
		{TypeParameter, "typename", "T", ""},
		{IntParameter, "int", "N", "4"},
		{UintParameter, "uint", "STEP", "1"},
		{BoolParameter, "bool", "SCALED", "true"},
	}, k.Template)

	type buffer struct {
		name      string
		space     AddressSpace
		reference bool
		constant  bool
		element   string
		index     int
		slot      int
	}
	var buffers []buffer
	for _, b := range k.Buffers {
		buffers = append(buffers, buffer{b.Name, b.Space, b.Reference, b.Const, b.Element, b.Index, b.Slot})
		require.Equal(t, b.Name, src[b.Pos.Offset:][:len(b.Name)])
	}
	require.Equal(t, []buffer{
		{"x", Device, false, true, "T", 0, 0},
		{"weight", Device, false, true, "T", 1, 1},
		{"width", Constant, true, true, "uint", 5, 5},
		{"table_in", Constant, false, true, "float", 2, 2},
		{"y", Device, false, false, "T", 6, 6},
		{"sums", Device, false, false, "float", -1, 3},
	}, buffers)
	require.Equal(t, []string{"x", "weight", "table_in", "width"}, names(k.Inputs()))
	require.Equal(t, []string{"sums", "y"}, names(k.Outputs()))

	var attributes [][3]string
	for _, a := range k.Attributes {
		attributes = append(attributes, [3]string{a.Name, a.Type, a.Attribute})
	}
	require.Equal(t, [][3]string{
		{"tgid", "uint3", "threadgroup_position_in_grid"},
		{"position", "uint2", "thread_position_in_threadgroup"},
		{"lane", "ushort", "thread_index_in_simdgroup"},
		{"simdgroup_index_in_threadgroup", "uint", "simdgroup_index_in_threadgroup"},
	}, attributes)

	require.Equal(t, k.Body, src[k.BodyPos.Offset:][:len(k.Body)])
	require.Equal(t, byte('{'), src[k.BodyPos.Offset-1])
	require.Equal(t, byte('}'), src[k.BodyPos.Offset+len(k.Body)])
	requirePosition(t, src, k.BodyPos)

	h, err := file.Kernel("histogram")
	require.NoError(t, err)
	require.True(t, h.Buffers[0].Atomic)
	require.Equal(t, "atomic_uint", h.Buffers[0].Element)
	require.Equal(t, []string{"counts", "plain", "total"}, names(h.Outputs())) // slots 2, 3 and 4
	require.Equal(t, []string{"v", "params"}, names(h.Inputs()))               // slots 0 and 1
}

func names(buffers []*Buffer) []string {
	var list []string
	for _, b := range buffers {
		list = append(list, b.Name)
	}
	return list
}

// requirePosition checks that the line and column agree with the offset.
func requirePosition(t *testing.T, src string, p Position) {
	t.Helper()
	offset := 0
	for range p.Line - 1 {
		offset += strings.IndexByte(src[offset:], '\n') + 1
	}
	require.Equal(t, p.Offset, offset+p.Column-1)
}

// A header keeps everything except kernels, on the same lines.
func TestParseHeader(t *testing.T) {
	file, src := parseFile(t, "example.metal")
	lines := strings.Split(src, "\n")
	for _, k := range file.Kernels {
		header := strings.Split(k.Header, "\n")
		require.Empty(t, header[len(header)-1], "the header ends with a newline")
		for i, line := range header {
			if strings.TrimSpace(line) != "" {
				require.Equal(t, lines[i], line, "line %d", i+1)
			}
		}
		for _, kept := range []string{
			"inline float sum(", "struct Params {", "constant float table",
			"#define DEV device", "// One file",
		} {
			require.Contains(t, k.Header, kept)
		}
		for _, left := range []string{
			"#include", "using namespace", "norm<float>", "instantiate_norm(half)",
			"void histogram",
		} {
			require.NotContains(t, k.Header, left)
		}
		if k.Name == "histogram" {
			require.Equal(t, 2, strings.Count(k.Header, "\n#if"))
			require.Equal(t, 2, strings.Count(k.Header, "\n#endif"), "the conditional about the kernel is closed")
		} else {
			require.NotContains(t, k.Header, "#if")
		}
	}
}

func TestParseForms(t *testing.T) {
	tests := []struct {
		name string
		src  string
		want []string // kernel names
		body string   // the last kernel's
	}{
		{"kernel void", "kernel void f(device float* y) { y[0] = 1; }", []string{"f"}, " y[0] = 1; "},
		{"void kernel attribute", "[[kernel]] void f(device float* y) {}", []string{"f"}, ""},
		{"attribute list", "[[host_name(\"g\")]] [[kernel]] void f(device float* y) {}", []string{"f"}, ""},
		{"static inline", "static kernel void f(device float* y) {}", []string{"f"}, ""},
		{"attribute behind", "kernel void f(device float* y [[buffer(0)]]) " +
			"[[max_total_threads_per_threadgroup(64)]] {}", []string{"f"}, ""},
		{"in a namespace", "namespace a { namespace { kernel void f(device float* y) {} } }", []string{"f"}, ""},
		{"in extern C", "extern \"C\" { kernel void f(device float* y) {} }", []string{"f"}, ""},
		{"extern C", "extern \"C\" kernel void f(device float* y) {}", []string{"f"}, ""},
		{"two", "kernel void f(device float* y) {} kernel void g(device float* y) { {} }", []string{"f", "g"}, " {} "},
		{"a prototype before", "kernel void f(device float* y); kernel void f(device float* y) {}", []string{"f"}, ""},
		{"other items", "struct S { int kernel; float get() const device { return 1; } S() : kernel{1} {} } s; enum " +
			"class E : uint { a, b };\n" +
			"typedef float F; using G = float; template <typename T> T h(T a = T{1}) { return a; }\nconstant float " +
			"t[] {1, 2};\n" +
			"kernel void f(device float* y) {}", []string{"f"}, ""},
		{
			"macro calls without semicolons", "#define A(x)\nA(1)\nA(2)\nkernel void f(device float* y) {}",
			[]string{"f"},
			"",
		},
		{
			"branches of signatures", "#ifdef __A\nkernel void f(device float* y, uint i [[thread_position_in_grid]]) " +
				"{\n#else\nkernel void f(device float* y) {\n#endif\n}",
			[]string{"f"},
			"\n#else\nkernel void f(device float* y) {\n#endif\n",
		},
		{"comments", "kernel /* a */ void f( // b\n device float* y /* } */) { /* { */ }", []string{"f"}, " /* { */ "},
		{
			"strings", "kernel void f(device float* y) { auto s = \"}\"; char c = '}'; }",
			[]string{"f"},
			" auto s = \"}\"; char c = '}'; ",
		},
		{"space after the type", "kernel void f(float device * y, const float constant & s, device const vec<float, " +
			"4> *v) {}", []string{"f"}, ""},
		{"crlf", "kernel void f(\r\n device float* y)\r\n{\r\n}\r\n", []string{"f"}, "\r\n"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			file, err := parseText(test.src)
			require.NoError(t, err)
			var got []string
			for _, k := range file.Kernels {
				got = append(got, k.Name)
				requirePosition(t, test.src, k.BodyPos)
			}
			require.Equal(t, test.want, got)
			require.Equal(t, test.body, file.Kernels[len(file.Kernels)-1].Body)
		})
	}
}

func TestParseArguments(t *testing.T) {
	file, err := parseText(`
kernel void f(
  coherent(device) device atomic<uint>* volatile a,
  volatile device atomic_float* b,
  const device metal::packed_float3* __restrict c,
  constant unsigned int& d,
  device const array<float, 2 * (1 + 1)>* e,
  constant struct P& p [[buffer(9), function_constant(has_p)]],
  threadgroup float* shared [[threadgroup(1)]],
  threadgroup half* more,
  const uint i [[thread_index_in_threadgroup]],
  metal::uint3 j [[thread_position_in_grid]],
  unsigned k [[thread_index_in_simdgroup]],
  vec<uint, 2> l [[threads_per_grid]],
  [[maybe_unused]] ushort3 m [[threads_per_threadgroup]]) {}`)
	require.NoError(t, err)
	k := file.Kernels[0]
	var elements []string
	for _, b := range k.Buffers {
		elements = append(elements, b.Element)
	}
	require.Equal(t, []string{
		"atomic<uint>", "atomic_float", "packed_float3", "unsigned int", "array<float, 2*(1+1)>",
		"P",
	}, elements)
	require.True(t, k.Buffers[0].Atomic && k.Buffers[1].Atomic && !k.Buffers[2].Atomic)
	require.Equal(t, []string{"a", "b"}, names(k.Outputs()))
	require.Equal(t, []bool{false, true, false}, []bool{
		k.Buffers[0].Volatile,
		k.Buffers[1].Volatile, k.Buffers[2].Volatile,
	})
	require.Equal(t, []bool{true, false}, []bool{k.Buffers[0].Coherent, k.Buffers[1].Coherent})
	require.Equal(t, "shared", k.Threadgroup[0].Name)
	require.Equal(t, 1, k.Threadgroup[0].Index)
	require.Equal(t, ThreadgroupArgument{"more", k.Threadgroup[1].Pos, "half", -1, false}, k.Threadgroup[1])
	var types []string
	for _, a := range k.Attributes {
		types = append(types, a.Type)
	}
	require.Equal(t, []string{"uint", "uint3", "uint", "uint2", "ushort3"}, types)
}

// Arguments that MLX adds itself are no inputs.
func TestParseImplicitArguments(t *testing.T) {
	file, err := parseText(`kernel void f(
  device const float* x, constant int* x_shape, const constant int64_t* x_strides, constant int& x_ndim,
  constant float* y_shape, constant int* out_shape, device float* out) {}`)
	require.NoError(t, err)
	k := file.Kernels[0]
	require.Equal(t, []string{"x", "y_shape", "out_shape"}, names(k.Inputs()))
	require.Equal(t, "x", k.Buffers[1].Implicit)
}

func TestParseFunctionConstants(t *testing.T) {
	src := "constant bool has_w [[function_constant(20)]];\n  constant int n [[function_constant(0)]];\nkernel void " +
		"f(device float* y) { if (has_w) y[0] = n; }\n"
	file, err := parseText(src)
	require.NoError(t, err)
	k := file.Kernels[0]
	require.Equal(t, []string{"has_w", "n"}, []string{k.Constants[0].Name, k.Constants[1].Name})
	require.Equal(t, []string{"bool", "int"}, []string{k.Constants[0].Type, k.Constants[1].Type})
	require.Equal(t, []int{20, 0}, []int{k.Constants[0].Index, k.Constants[1].Index})
}

// The header keeps the text behind a kernel only if a function is declared before the kernel, without its body.
func TestParseHeaderBehindKernel(t *testing.T) {
	file, err := parseText("float g(float x);\nkernel void f(device float* y) { y[0] = g(1); }\nfloat g(float x) { " +
		"return x; }\n")
	require.NoError(t, err)
	require.Equal(t, "float g(float x);\n\nfloat g(float x) { return x; }\n", file.Kernels[0].Header)

	file, err = parseText("#define A 1\nkernel void f(device float* y) { y[0] = A; }\n#undef A\n#define A 2\nkernel " +
		"void g(device float* y) { y[0] = A; }\n")
	require.NoError(t, err)
	require.Equal(t, "#define A 1\n", file.Kernels[0].Header)
	require.Equal(t, "#define A 1\n\n#undef A\n#define A 2\n", file.Kernels[1].Header)

	file, err = parseText("kernel void f(device float* y) {}\nkernel void g(device float* y) {}\n")
	require.NoError(t, err)
	require.Empty(t, file.Kernels[0].Header)
	require.Empty(t, file.Kernels[1].Header)
}

func TestKernelByName(t *testing.T) {
	file, err := parseText("kernel void f(device float* y) {}")
	require.NoError(t, err)
	k, err := file.Kernel("")
	require.NoError(t, err)
	require.Equal(t, "f", k.Name)
	_, err = file.Kernel("g")
	require.EqualError(t, err, "f.metal: the file has no kernel \"g\"; it has f")
	require.True(t, errors.As(err, new(*Error)))

	file, _ = parseFile(t, "example.metal")
	_, err = file.Kernel("")
	require.ErrorContains(t, err, "choose one of norm, histogram")
}
