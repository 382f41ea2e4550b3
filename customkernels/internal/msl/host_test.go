package msl

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/internal/skip"
)

var update = flag.Bool("update", false, "write the golden files of testdata anew")

// hostTexts are generated texts of all kinds, by name.
func hostTexts(t *testing.T) map[string]string {
	t.Helper()
	texts := map[string]string{"norm": exampleNorm(t), "histogram": exampleHistogram(t)}
	for _, name := range []string{"mlx_sample", "mlx_atomic"} {
		text, err := os.ReadFile(filepath.Join("testdata", name+".metal"))
		require.NoError(t, err)
		texts[name] = string(text)
	}
	shaders, err := filepath.Glob("../../shaders/*.metal")
	require.NoError(t, err)
	for _, shader := range shaders {
		file, err := Parse(os.DirFS("../../shaders"), filepath.Base(shader))
		require.NoError(t, err)
		for _, k := range file.Kernels {
			texts[k.Name] = generateDefault(k, 64)
			texts[k.Name+" of small inputs"] = generateDefault(k, 4)
		}
	}
	return texts
}

// generateDefault is what MLX generates for a kernel with half for its types, 4 for its numbers
// (and one lane), and inputs of so many elements, but enough for those that must be in device memory.
func generateDefault(k *Kernel, size int) string {
	m := k.MLX()
	dtype := func(b *Buffer) string {
		if d, ok := dtypes[b.Element]; ok {
			return d
		}
		return "float16_t"
	}
	var inputs, outputs []argument
	var template []templateArgument
	for i, b := range m.Inputs {
		in := argument{dtype(b), size}
		if b.Space == Device { // small ones are padded
			in.size = max(size, 8)
		} else if b.Reference && !m.Viewed[i] {
			in.size = 0
		}
		inputs = append(inputs, in)
	}
	for _, b := range m.Outputs {
		outputs = append(outputs, argument{dtype(b), 64})
	}
	for _, p := range k.Template {
		switch p.Kind {
		case TypeParameter:
			template = append(template, templateArgument{"typename", "float16_t"})
		case BoolParameter:
			template = append(template, templateArgument{"bool", "1"})
		default:
			number := "4"
			if p.Name == "LANES" {
				number = "1"
			}
			template = append(template, templateArgument{"int", number})
		}
	}
	return generate(k.Name, m, inputs, outputs, template)
}

func TestHostGolden(t *testing.T) {
	for _, name := range []string{"norm", "histogram", "mlx_sample", "mlx_atomic"} {
		host, err := Host(hostTexts(t)[name])
		require.NoError(t, err)
		golden := filepath.Join("testdata", name+".golden.cpp")
		if *update {
			require.NoError(t, os.WriteFile(golden, []byte(host.Source), 0o644))
		}
		want, err := os.ReadFile(golden)
		require.NoError(t, err)
		require.Equal(t, string(want), host.Source, "%s differs; if that is meant, run the tests with -update", golden)
	}
}

func TestHostDescription(t *testing.T) {
	host, err := Host(hostTexts(t)["mlx_sample"])
	require.NoError(t, err)
	require.Equal(t, "custom_kernel_rms_dx__float16_t_3_1_float16_t_bfloat16_tc_int32_t_floats_float16_t_float", host.KernelName)
	require.Equal(t, []HostBuffer{
		{"x", "float16_t", false, false},
		{"w", "bfloat16_t", false, false},
		{"dims", "int32_t", false, false},
		{"s0", "float", true, false},
		{"dx", "float16_t", false, true},
		{"p", "float", false, true},
	}, host.Buffers)
	require.True(t, host.UsesFibers)

	host, err = Host(hostTexts(t)["mlx_atomic"])
	require.NoError(t, err)
	require.Equal(t, []HostBuffer{
		{"x", "float16_t", false, false},
		{"x_shape", "int", false, false},
		{"x_strides", "int64_t", false, false},
		{"x_ndim", "int", true, false},
		{"h", "atomic<uint32_t>", false, true},
		{"y", "atomic<float>", false, true},
	}, host.Buffers)
	require.False(t, host.UsesFibers)
}

// The host's text differs from the generated one in qualifiers, attributes and what follows from
// them, and in nothing else; what is left stands where it stood.
func TestHostChangesQualifiersOnly(t *testing.T) {
	for name, text := range hostTexts(t) {
		t.Run(name, func(t *testing.T) {
			host, err := Host(text)
			require.NoError(t, err)
			_, source, ok := strings.Cut(host.Source, "\n")
			require.True(t, ok)
			source = strings.Replace(source, "namespace metal { namespace mlxg_shader { ", "", 1)
			requireOnlyQualifiersChanged(t, text, source)
		})
	}
}

var threadgroupReference = regexp.MustCompile(`^typedef (.+?) (mlxg_tg_type_\d+)((?: \[[^;]*\])?); (\S+)& (\w+) = mlxg::threadgroup_variable<(\S+), \d+>\(\)`)

// requireOnlyQualifiersChanged compares token by token.
func requireOnlyQualifiersChanged(t *testing.T, text, host string) {
	t.Helper()
	in, out := Tokenize(text), Tokenize(host)
	j := 0
	spoiled := 0 // a line whose columns have moved
	for i := 0; i < len(in); i++ {
		a, b := in[i], Token{}
		if j < len(out) {
			b = out[j]
		}
		// The later of two overloads that became equal goes as a whole.
		rest := text[a.Offset:]
		switch {
		case (strings.HasPrefix(rest, "template <typename T>\ninline float load(const constant T* p") ||
			strings.HasPrefix(rest, "template <typename V> constant V* mlxg_view(")) && a.Line != b.Line:
			for !in[i].is("}") {
				i++
			}
		case a.Kind == b.Kind && a.Text == b.Text && !(a.is("template") && in[i+1].is("[") && a.Directive == 0):
			require.Equal(t, a.Line, b.Line, "%q", a.Text)
			if j > 0 && a.Line > 1 && spoiled != a.Line {
				require.Equal(t, a.Column, b.Column, "line %d: %q", a.Line, a.Text)
			}
			j++
		case a.is("[") && in[i+1].is("["): // an attribute
			for depth := 0; ; i++ {
				if in[i].is("[") {
					depth++
				} else if in[i].is("]") {
					if depth--; depth == 0 {
						break
					}
				}
			}
		case a.is("template") && in[i+1].is("["): // an instantiation
			for !in[i].is(";") {
				i++
			}
		case a.is("threadgroup") && b.is("typedef"):
			spoiled = a.Line
			for { // each declarator
				m := threadgroupReference.FindStringSubmatch(host[out[j].Offset:])
				require.NotNil(t, m, "line %d", a.Line)
				require.Equal(t, m[2], m[4])
				require.Equal(t, m[2], m[6])
				written := m[5] + strings.ReplaceAll(m[3], " [", "[")
				if in[i].is("threadgroup") {
					written = "threadgroup " + m[1] + " " + written
				} else {
					written = ", " + written
				}
				for _, word := range Tokenize(written) {
					require.Equal(t, word.Text, in[i].Text, "line %d", a.Line)
					i++
				}
				for end := out[j].Offset + len(m[0]); j < len(out) && out[j].Offset < end; {
					j++
				}
				if !in[i].is(",") {
					break
				}
				require.True(t, out[j].is(";"))
				j++
			}
			i--
		case a.Text == `"clang loop unroll(full)"` && b.Text == strconv.Quote(Unroll):
			j++
		case a.is("constant") && b.is("const"):
			j++
		case a.is("device"), a.is("constant"), a.is("threadgroup"), a.is("thread"), a.is("kernel"):
		case a.is("DEV") && in[i-1].Directive == 0: // the example's macro for device
		default:
			require.Fail(t, "changed", "line %d: %q became %q", a.Line, a.Text, b.Text)
		}
	}
	if j < len(out) && out[j].is("}") {
		j += 2
	}
	require.True(t, strings.HasPrefix(host[out[j].Offset:], "namespace {\nvoid mlxg_invoke("))
}

// Of the lines that are named, both values of a conditional operator become one type.
func TestHostConditionals(t *testing.T) {
	body := "half h = x[0] > 0 ? x[0] : 0;\n" +
		"y[0] = f(x[0] > 1 ? (device const half*)x : x + 1, n < 3 ? pick<1, 2>(h) : n > 4 ? -1 : h * 2, 1);\n" +
		"y[1] = n > 0 ? 1 : 2; case_label: y[2] = 0;\n"
	text := "[[kernel]] void custom_kernel_f(\n  device float* y [[buffer(0)]]) {\n" + body + "}\n"
	plain, err := Host(text)
	require.NoError(t, err)
	host, err := Host(text, 3, 4)
	require.NoError(t, err)
	lines := strings.Split(host.Source, "\n")
	require.Equal(t, "half h = x[0] > 0 ? (::mlxg::arm<decltype(( x [ 0 ])), decltype(( 0))>)(x[0]) : (::mlxg::arm<decltype(( 0)), decltype(( x [ 0 ]))>)(0);", lines[3])
	inner := "(::mlxg::arm<decltype(( - 1)), decltype(( h * 2))>)("
	last := "(::mlxg::arm<decltype(( h * 2)), decltype(( - 1))>)("
	nested := " n > 4 ? " + inner + " - 1) : " + last + " h * 2)"
	first := " pick < 1 , 2 > ( h )"
	require.Equal(t, "y[0] = f(x[0] > 1 ? (::mlxg::arm<decltype(( (  const half * ) x)), decltype(( x + 1))>)((       const half*)x) : "+
		"(::mlxg::arm<decltype(( x + 1)), decltype(( (  const half * ) x))>)(x + 1), n < 3 ? (::mlxg::arm<decltype(("+first+")), decltype(("+nested+"))>)(pick<1, 2>(h)) : "+
		"(::mlxg::arm<decltype(("+nested+")), decltype(("+first+"))>)(n > 4 ? "+inner+"-1) : "+last+"h * 2)), 1);", lines[4])
	unchanged := strings.Split(plain.Source, "\n")
	require.Equal(t, unchanged[5:], lines[5:])
}

// hostBody rewrites a header and a body and returns what becomes of them.
func hostBody(t *testing.T, header, body string) (newHeader, newBody string) {
	t.Helper()
	text := header + "[[kernel]] void custom_kernel_f(\n  device float* y [[buffer(0)]]) {\n" + body + "\n}\n"
	host, err := Host(text)
	require.NoError(t, err)
	source := strings.TrimPrefix(host.Source, "#include \"metal_host.h\"\n")
	source = strings.Replace(source, "namespace metal { namespace mlxg_shader { ", "", 1)
	newHeader, rest, ok := strings.Cut(source, "           void custom_kernel_f(\n")
	require.True(t, ok, source)
	_, rest, ok = strings.Cut(rest, ") {\n")
	require.True(t, ok, source)
	newBody, _, ok = strings.Cut(rest, "\n}\n")
	require.True(t, ok, source)
	return newHeader, newBody
}

func TestHostRewrites(t *testing.T) {
	squeeze := regexp.MustCompile(` +`)
	tests := []struct{ name, header, wantHeader, body, wantBody string }{
		{
			name: "pointers", body: "device float* p = y; const device half* q; thread float &r = a; threadgroup T* s; float device * u;",
			wantBody: " float* p = y; const half* q; float &r = a; T* s; float * u;",
		},
		{
			name: "constant pointers", body: "constant float* p = t; const constant float* q; constant const float* r; float constant * s; constant float& u = t[0]; constexpr constant float* v = t;",
			wantBody: "const float* p = t; const float* q; const float* r; float const * s; const float& u = t[0]; constexpr const float* v = t;",
		},
		{
			name: "constant globals", header: "constant float a = 1;\nconstant constexpr int b = 2;\nconstexpr constant int c = 3;\nstatic constant float d[2] = {1, 2};\nconst constant float e = 1;\nconstant vec<float, 4> f = 1; static constant constexpr const short g = 1;\n",
			wantHeader: "const float a = 1;\n constexpr int b = 2;\nconstexpr int c = 3;\nstatic const float d[2] = {1, 2};\nconst float e = 1;\nconst vec<float, 4> f = 1; static constexpr const short g = 1;\n",
		},
		{
			name: "casts and template arguments", body: "a = (const device uint4*)x; b = reinterpret_cast<const constant T*>(x); c = foo<device float*, threadgroup T&>(*(thread int*)p);",
			wantBody: "a = (const uint4*)x; b = reinterpret_cast<const T*>(x); c = foo< float*, T&>(*( int*)p);",
		},
		{
			name: "members", header: "struct S {\n  static constexpr constant short n = 4;\n  device float* p;\n  S(int a) thread : p(0) {}\n  S(float a) constant;\n  float get() const device { return p[0]; }\n  float get2() constant { return 0; }\n  void operator()(thread S& s) threadgroup;\n};\n",
			wantHeader: "struct S {\n static constexpr short n = 4;\n float* p;\n S(int a) : p(0) {}\n S(float a) ;\n float get() const { return p[0]; }\n float get2() const { return 0; }\n void operator()( S& s) ;\n};\n",
		},
		{
			name: "names that only look like qualifiers", body: "int thread = 1; thread += 2; s.device = thread * 3; p->constant(4); f(thread, device); return thread; a::kernel k; int kernel = 2; x = device & 1; y[thread] = device - 1;",
			wantBody: "int thread = 1; thread += 2; s.device = thread * 3; p->constant(4); f(thread, device); return thread; a::kernel k; int kernel = 2; x = device & 1; y[thread] = device - 1;",
		},
		{
			name: "macros", header: "#define DEV device\n#define SPACE constant\n#define CONST static constant constexpr const\n#define LOAD(p) ((device float*)(p))[0]\nDEV float* f(SPACE float* p, const SPACE int* q);\n",
			wantHeader: "#define DEV \n#define SPACE \n#define CONST static constexpr const\n#define LOAD(p) (( float*)(p))[0]\n float* f(const float* p, const int* q);\n",
		},
		{
			name: "attributes", body: "[[unroll]] for (;;) { int a [[maybe_unused]] = 0; } x[y[0]] = 1;",
			wantBody: " for (;;) { int a = 0; } x[y[0]] = 1;",
		},
		{
			name: "threadgroup variables", body: "threadgroup float a[32], b2[4][8]; threadgroup T s;\nthreadgroup typename S::U u[N * 2]; threadgroup vec<T, 4> v; threadgroup unsigned int w;",
			wantBody: "typedef float mlxg_tg_type_0 [32]; mlxg_tg_type_0& a = mlxg::threadgroup_variable<mlxg_tg_type_0, 0>(); typedef float mlxg_tg_type_1 [4][8]; mlxg_tg_type_1& b2 = mlxg::threadgroup_variable<mlxg_tg_type_1, 1>(); typedef T mlxg_tg_type_2; mlxg_tg_type_2& s = mlxg::threadgroup_variable<mlxg_tg_type_2, 2>();\n" +
				"typedef typename S :: U mlxg_tg_type_3 [N * 2]; mlxg_tg_type_3& u = mlxg::threadgroup_variable<mlxg_tg_type_3, 3>(); typedef vec < T , 4 > mlxg_tg_type_4; mlxg_tg_type_4& v = mlxg::threadgroup_variable<mlxg_tg_type_4, 4>(); typedef unsigned int mlxg_tg_type_5; mlxg_tg_type_5& w = mlxg::threadgroup_variable<mlxg_tg_type_5, 5>();",
		},
		{
			name: "threadgroup variables over lines", body: "alignas(16) threadgroup float a[4],\n  b /* c */ [2];\ny[0] = a[0];",
			wantBody: "typedef float mlxg_tg_type_0 [4]; mlxg_tg_type_0& a = mlxg::threadgroup_variable<mlxg_tg_type_0, 0>(); \ntypedef float mlxg_tg_type_1 [2]; mlxg_tg_type_1& b = mlxg::threadgroup_variable<mlxg_tg_type_1, 1>();\ny[0] = a[0];",
		},
		{
			name: "threadgroup pointers", body: "threadgroup float* p = a; threadgroup float (&r)[4] = b; for (threadgroup T* q = c; q; ++q) {} threadgroup atomic_uint* n, *m;",
			wantBody: " float* p = a; float (&r)[4] = b; for ( T* q = c; q; ++q) {} atomic_uint* n, *m;",
		},
		{
			name: "threadgroup atomics in blocks", body: "{ threadgroup atomic_uint n; } if (a) { threadgroup float b[2]; }",
			wantBody: "{ typedef atomic_uint mlxg_tg_type_0; mlxg_tg_type_0& n = mlxg::threadgroup_variable<mlxg_tg_type_0, 0>(); } if (a) { typedef float mlxg_tg_type_1 [2]; mlxg_tg_type_1& b = mlxg::threadgroup_variable<mlxg_tg_type_1, 1>(); }",
		},
		{
			name: "threadgroup variables of an unnamed type", body: "threadgroup struct { float a[4];\nint n; } s; threadgroup union U { float f; } u[2]; threadgroup __attribute__((aligned(16))) half h[8];",
			wantBody: "typedef struct { float a [ 4 ] ; int n ; } mlxg_tg_type_0; mlxg_tg_type_0& s = mlxg::threadgroup_variable<mlxg_tg_type_0, 0>()\n ; typedef union U { float f ; } mlxg_tg_type_1 [2]; mlxg_tg_type_1& u = mlxg::threadgroup_variable<mlxg_tg_type_1, 1>(); typedef __attribute__ ( ( aligned ( 16 ) ) ) half mlxg_tg_type_2 [8]; mlxg_tg_type_2& h = mlxg::threadgroup_variable<mlxg_tg_type_2, 2>();",
		},
		{
			name: "literals", header: "#define ONE 1.0H\n", wantHeader: "#define ONE 1.0h\n",
			body: "half a = 1.5H + .5h; bfloat b = 1.5bf; bfloat c = 0x1p3BF; int d = 0xbf;", wantBody: "half a = 1.5h + .5h; bfloat b = ::metal::bfloat(1.5f); bfloat c = ::metal::bfloat(0x1p3f); int d = 0xbf;",
		},
		{
			name: "overloads", header: "float f(device float* p) { return *p; }\nfloat f(threadgroup float* p) { return *p; }\nstruct S { float g(S s) const { return 1; } float g(S s) const device { return 1; } };\ntemplate <typename T> struct X; template <typename T> struct X<device T*> { int a; }; template <typename T> struct X<threadgroup T*> { int a; };\n",
			wantHeader: "float f( float* p) { return *p; }\n \nstruct S { float g(S s) const { return 1; } };\ntemplate <typename T> struct X; template <typename T> struct X< T*> { int a; }; \n",
		},
		{
			name: "specializations in classes", header: "struct S { template <typename T> T f(T a) { return a; } template <> float f(float a) { return -a; } };\n",
			wantHeader: "struct S { template <typename T> T f(T a) { return a; } float f(float a) { return -a; } };\n",
		},
		{
			name: "includes", header: "#include <metal_stdlib>\n# include <simd/simd.h> // a\nint a;\n",
			wantHeader: " \n // a\nint a;\n",
		},
		{
			name: "unrolled loops", header: "#define UNROLL _Pragma(\"clang loop unroll(full)\")\n",
			wantHeader: "#define UNROLL _Pragma(\"GCC unroll 64\" )\n",
			body:       "#pragma unroll\nfor (;;) {}\n# pragma clang loop unroll(full) // all\nfor (;;) {}\n#pragma clang loop vectorize(enable)\nfor (;;) {}",
			wantBody:   "#pragma GCC unroll 64\nfor (;;) {}\n#pragma GCC unroll 64 \nfor (;;) {}\n#pragma clang loop vectorize(enable)\nfor (;;) {}",
		},
		{
			name: "other kernels and instantiations", header: "template <typename T> kernel void g(device T* p) {}\ntemplate [[host_name(\"g\")]] kernel void g<float>(device float*);\ntemplate void h<float>(device float*);\n",
			wantHeader: "template <typename T> void g( T* p) {}\n \ntemplate void h<float>( float*);\n",
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			header, body := hostBody(t, test.header, test.body)
			require.Equal(t, strings.Count(test.header, "\n"), strings.Count(header, "\n"))
			require.Equal(t, strings.Count(test.body, "\n"), strings.Count(body, "\n"))
			require.Equal(t, test.wantHeader, squeeze.ReplaceAllString(header, " "))
			require.Equal(t, test.wantBody, strings.ReplaceAll(squeeze.ReplaceAllString(body, " "), "() ;", "();"))
		})
	}
}

func TestHostErrors(t *testing.T) {
	kernel := func(header, body string) string {
		return header + "\n[[kernel]] void f(device float* y [[buffer(0)]]) {\n" + body + "\n}\n"
	}
	tests := []struct{ name, text, at, want string }{
		{"initializer", kernel("", "threadgroup float a = 1;"), "3:21", "cannot have an initializer"},
		{"braces", kernel("", "threadgroup float a[2] {1, 2};"), "3:24", "cannot have an initializer"},
		{"constructor", kernel("", "threadgroup float4 a(1);"), "3:21", "cannot have an initializer"},
		{"program scope", kernel("threadgroup float a[4];", ""), "1:1", "only be declared in a kernel"},
		{"helper", kernel("template <typename U> void f() { threadgroup U s[4]; }", ""), "1:34", "only be declared in a kernel"},
		{"member", kernel("struct S { threadgroup float a; };", ""), "1:12", "only be declared in a kernel"},
		{"behind the type", kernel("", "float threadgroup a[4];"), "3:7", "before the type"},
		{"mixed with pointers", kernel("", "threadgroup float a, *b;"), "3:24", "separate statements"},
		{"mixed with pointers first", kernel("", "threadgroup float *b, a;"), "3:23", "separate statements"},
		{"in a macro", kernel("#define S threadgroup float a[4]", ""), "1:11", "in a macro"},
		{"MLX's header", kernel("#include \"mlx/backend/metal/kernels/utils.h\"", ""), "1:10", "cannot be included"},
		{"function constant", kernel("constant bool b [[function_constant(0)]];", ""), "1:17", "has no value"},
		{"overloads with different bodies", kernel("float f(device float* p) { return 1; } float f(threadgroup float* p) { return 2; }", ""), "1:40", "differs from an earlier declaration in its address spaces"},
		{"no kernel", "float f;", "1:1", "no kernel"},
		{"threadgroup argument", "kernel void f(device float* y, threadgroup float* s) {}", "1:51", "has no size"},
		{"no instantiation", "template <typename T> kernel void f(device T* y) {}", "1:35", "never instantiated"},
		{"wrong instantiation", "template <typename T, int N> kernel void f(device T* y) {}\ntemplate [[host_name(\"f\")]] kernel void f<float>(device float*);", "2:41", "gives 1 template arguments"},
		{"buffer number", "kernel void f(device float* y [[buffer(64)]]) {}", "1:29", "the buffer number 64 is too great"},
		{"broken", "kernel void f(device float* y) {", "1:32", "never closed"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := Host(test.text)
			var problem *Error
			require.ErrorAs(t, err, &problem)
			require.Contains(t, problem.Message, test.want)
			require.True(t, strings.HasPrefix(err.Error(), test.at+": "), err.Error())
		})
	}
}

func TestHostFibers(t *testing.T) {
	tests := map[string]bool{
		"y[0] = 1;":                                              false,
		"y[thread_index_in_simdgroup] = 1;":                      false,
		"y[simdgroup_index_in_threadgroup] = 1;":                 false,
		"// simd_sum\ny[0] = 1;":                                 false,
		"y[0] = simd_sum(1);":                                    true,
		"y[0] = quad_max(1);":                                    true,
		"threadgroup_barrier(mem_flags::mem_none);":              true,
		"simdgroup_barrier(mem_flags::mem_none);":                true,
		"threadgroup float a;":                                   true,
		"simdgroup_float8x8 m;":                                  true,
		"auto m = make_filled_simdgroup_matrix<float, 8, 8>(0);": true,
		"\n#define SUM(x) simd_sum(x)\ny[0] = SUM(1);":           true,
	}
	for body, want := range tests {
		host, err := Host("[[kernel]] void f(device float* y [[buffer(0)]]) {\n" + body + "\n}\n")
		require.NoError(t, err)
		require.Equal(t, want, host.UsesFibers, body)
	}
}

// Names of a shader that the C library has too are the shader's.
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
			host, err := Host(test.text)
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

// The result compiles against the executor's header, with every compiler at hand.
func TestHostCompiles(t *testing.T) {
	header, err := filepath.Abs("../host")
	require.NoError(t, err)
	require.FileExists(t, filepath.Join(header, "metal_host.h"))
	texts := hostTexts(t)
	texts["names of the C library"] = generated(`constant float gamma = 1, y1 = 2;
inline float expm1f(float x) { return x; }
inline float index(int read, float* write) { return write[read]; }
typedef float (*activation)(float);
typedef int (sum_of)(thread int&);
#define SPACE device
struct Pair { float a, b; float sum() const device { return a + b; } float sum() const { return a + b; } };
template <typename T> float total(SPACE const T* p) { return p[0]; }
template <typename T> float total(constant T* p) { return p[0]; }
`, `  float buffer[1] = {gamma + expm1f(y1)};
  threadgroup Pair pairs[4], one;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  y[0] = index(0, buffer) + abs(-1) + max(1, 2) + total(x) + total(w) + pairs[0].sum() + one.a + T(eps);`)
	for tool, names := range map[skip.Tool][]string{skip.GXX: {"g++"}, skip.Clang: {"clang++", "clang++-14"}} {
		i := slices.IndexFunc(names, func(name string) bool { _, err := exec.LookPath(name); return err == nil })
		if i < 0 {
			skip.Lacking(t, tool, fmt.Sprintf("none of %q is on the PATH", names))
			continue
		}
		compiler := names[i]
		options := precompile(t, tool, compiler, header)
		for name, text := range texts {
			t.Run(compiler+"/"+name, func(t *testing.T) {
				t.Parallel()
				host, err := Host(text)
				require.NoError(t, err)
				command := exec.Command(compiler, slices.Concat(options, []string{"-x", "c++", "-fsyntax-only", "-"})...)
				command.Stdin = strings.NewReader(host.Source)
				output, err := command.CombinedOutput()
				require.NoError(t, err, "%s\n%s", output, host.Source)
			})
		}
	}
}

// precompile returns options with which a compiler reads texts that include metal_host.h. It reads the header once:
// without that, the header takes most of the time of each text.
func precompile(t *testing.T, tool skip.Tool, compiler, folder string) []string {
	t.Helper()
	compiled := filepath.Join(t.TempDir(), "metal_host.h.gch")
	options := []string{"-std=c++20", "-w", "-I" + folder}
	command := exec.Command(compiler, slices.Concat(options, []string{"-x", "c++-header", "-o", compiled, filepath.Join(folder, "metal_host.h")})...)
	output, err := command.CombinedOutput()
	require.NoError(t, err, "%s", output)
	if tool == skip.Clang {
		return append(options, "-include-pch", compiled)
	}
	// g++ looks for a precompiled header in each folder before it looks for the text.
	return slices.Insert(options, 0, "-I"+filepath.Dir(compiled))
}
