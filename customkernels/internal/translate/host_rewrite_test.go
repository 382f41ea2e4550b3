package translate

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/customkernels/internal/msl"
)

// hostBody returns a header and a body after translation.
func hostBody(t *testing.T, header, body string, c Conversions) (newHeader, newBody string) {
	t.Helper()
	text := header + "[[kernel]] void custom_kernel_f(\n  device float* y [[buffer(0)]]) {\n" + body + "\n}\n"
	host, err := Host(text, c)
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
			name: "pointers", body: "device float* p = y; const device half* q; thread float &r = a; threadgroup T* " +
				"s; float device * u;",
			wantBody: " float* p = y; const half* q; float &r = a; T* s; float * u;",
		},
		{
			name: "constant pointers", body: "constant float* p = t; const constant float* q; constant const float* " +
				"r; float constant * s; constant float& u = t[0]; constexpr constant float* v = t;",
			wantBody: "const float* p = t; const float* q; const float* r; float const * s; const float& u = t[0]; " +
				"constexpr const float* v = t;",
		},
		{
			name: "constant globals", header: "constant float a = 1;\nconstant constexpr int b = 2;\nconstexpr " +
				"constant int c = 3;\nstatic constant float d[2] = {1, 2};\nconst constant float e = 1;\nconstant " +
				"vec<float, 4> f = 1; static constant constexpr const short g = 1;\n",
			wantHeader: "const float a = 1;\n constexpr int b = 2;\nconstexpr int c = 3;\nstatic const float d[2] = " +
				"{1, 2};\nconst float e = 1;\nconst vec<float, 4> f = 1; static constexpr const short g = 1;\n",
		},
		{
			name: "casts and template arguments", body: "a = (const device uint4*)x; b = reinterpret_cast<const " +
				"constant T*>(x); c = foo<device float*, threadgroup T&>(*(thread int*)p);",
			wantBody: "a = (const uint4*)x; b = reinterpret_cast<const T*>(x); c = foo< float*, T&>(*( int*)p);",
		},
		{
			name: "members", header: "struct S {\n  static constexpr constant short n = 4;\n  device float* p;\n  " +
				"S(int a) thread : p(0) {}\n  S(float a) constant;\n  float get() const device { return p[0]; }\n  " +
				"float get2() constant { return 0; }\n  void operator()(thread S& s) threadgroup;\n};\n",
			wantHeader: "struct S {\n static constexpr short n = 4;\n float* p;\n S(int a) : p(0) {}\n S(float a) " +
				";\n float get() const { return p[0]; }\n float get2() const { return 0; }\n void operator()( S& s) " +
				";\n};\n",
		},
		{
			name: "names that only look like qualifiers",
			body: "int thread = 1; thread += 2; s.device = thread * 3; p->constant(4); f(thread, device); " +
				"return thread; a::kernel k; int kernel = 2; x = device & 1; y[thread] = device - 1;",
			wantBody: "int thread = 1; thread += 2; s.device = thread * 3; p->constant(4); f(thread, device); " +
				"return thread; a::kernel k; int kernel = 2; x = device & 1; y[thread] = device - 1;",
		},
		{
			name: "macros", header: "#define DEV device\n#define SPACE constant\n#define CONST static constant " +
				"constexpr const\n#define LOAD(p) ((device float*)(p))[0]\nDEV float* f(SPACE float* p, const SPACE " +
				"int* q);\n",
			wantHeader: "#define DEV \n#define SPACE \n#define CONST static constexpr const\n#define LOAD(p) (( " +
				"float*)(p))[0]\n float* f(const float* p, const int* q);\n",
		},
		{
			name: "attributes", body: "[[unroll]] for (;;) { int a [[maybe_unused]] = 0; } x[y[0]] = 1;",
			wantBody: " for (;;) { int a = 0; } x[y[0]] = 1;",
		},
		{
			name: "threadgroup variables", body: "threadgroup float a[32], b2[4][8]; threadgroup T s;\nthreadgroup " +
				"typename S::U u[N * 2]; threadgroup vec<T, 4> v; threadgroup unsigned int w;",
			wantBody: "typedef float mlxg_tg_type_0 [32]; mlxg_tg_type_0& a = " +
				"mlxg::threadgroup_variable<mlxg_tg_type_0, 0>(); typedef float mlxg_tg_type_1 [4][8]; " +
				"mlxg_tg_type_1& b2 = mlxg::threadgroup_variable<mlxg_tg_type_1, 1>(); typedef T mlxg_tg_type_2; " +
				"mlxg_tg_type_2& s = mlxg::threadgroup_variable<mlxg_tg_type_2, 2>();\n" +
				"typedef typename S :: U mlxg_tg_type_3 [N * 2]; mlxg_tg_type_3& u = " +
				"mlxg::threadgroup_variable<mlxg_tg_type_3, 3>(); typedef vec < T , 4 > mlxg_tg_type_4; " +
				"mlxg_tg_type_4& v = mlxg::threadgroup_variable<mlxg_tg_type_4, 4>(); typedef unsigned int " +
				"mlxg_tg_type_5; mlxg_tg_type_5& w = mlxg::threadgroup_variable<mlxg_tg_type_5, 5>();",
		},
		{
			name: "threadgroup variables over lines",
			body: "alignas(16) threadgroup float a[4],\n  b /* c */ [2];\ny[0] = a[0];",
			wantBody: "typedef float mlxg_tg_type_0 [4]; mlxg_tg_type_0& a = " +
				"mlxg::threadgroup_variable<mlxg_tg_type_0, 0>(); \ntypedef float mlxg_tg_type_1 [2]; " +
				"mlxg_tg_type_1& b = mlxg::threadgroup_variable<mlxg_tg_type_1, 1>();\ny[0] = a[0];",
		},
		{
			name: "threadgroup pointers", body: "threadgroup float* p = a; threadgroup float (&r)[4] = b; for " +
				"(threadgroup T* q = c; q; ++q) {} threadgroup atomic_uint* n, *m;",
			wantBody: " float* p = a; float (&r)[4] = b; for ( T* q = c; q; ++q) {} atomic_uint* n, *m;",
		},
		{
			name: "threadgroup atomics in blocks",
			body: "{ threadgroup atomic_uint n; } if (a) { threadgroup float b[2]; }",
			wantBody: "{ typedef atomic_uint mlxg_tg_type_0; mlxg_tg_type_0& n = " +
				"mlxg::threadgroup_variable<mlxg_tg_type_0, 0>(); } if (a) { typedef float mlxg_tg_type_1 [2]; " +
				"mlxg_tg_type_1& b = mlxg::threadgroup_variable<mlxg_tg_type_1, 1>(); }",
		},
		{
			name: "threadgroup variables of an unnamed type",
			body: "threadgroup struct { float a[4];\nint n; } s; threadgroup union U { float f; } u[2]; " +
				"threadgroup __attribute__((aligned(16))) half h[8];",
			wantBody: "typedef struct { float a [ 4 ] ; int n ; } mlxg_tg_type_0; mlxg_tg_type_0& s = " +
				"mlxg::threadgroup_variable<mlxg_tg_type_0, 0>()\n ; typedef union U { float f ; } mlxg_tg_type_1 " +
				"[2]; mlxg_tg_type_1& u = mlxg::threadgroup_variable<mlxg_tg_type_1, 1>(); typedef __attribute__ ( " +
				"( aligned ( 16 ) ) ) half mlxg_tg_type_2 [8]; mlxg_tg_type_2& h = " +
				"mlxg::threadgroup_variable<mlxg_tg_type_2, 2>();",
		},
		{
			name: "literals", header: "#define ONE 1.0H\n", wantHeader: "#define ONE 1.0h\n",
			body: "half a = 1.5H + .5h; bfloat b = 1.5bf; bfloat c = 0x1p3BF; int d = 0xbf;",
			wantBody: "half a = 1.5h + .5h; bfloat b = ::metal::bfloat(1.5f); bfloat c = " +
				"::metal::bfloat(0x1p3f); int d = 0xbf;",
		},
		{
			name: "overloads", header: "float f(device float* p) { return *p; }\nfloat f(threadgroup float* p) { " +
				"return *p; }\nstruct S { float g(S s) const { return 1; } float g(S s) const device { return 1; } " +
				"};\ntemplate <typename T> struct X; template <typename T> struct X<device T*> { int a; }; template " +
				"<typename T> struct X<threadgroup T*> { int a; };\n",
			wantHeader: "float f( float* p) { return *p; }\n \nstruct S { float g(S s) const { return 1; } " +
				"};\ntemplate <typename T> struct X; template <typename T> struct X< T*> { int a; }; \n",
		},
		{
			name: "specializations in classes", header: "struct S { template <typename T> T f(T a) { return a; } " +
				"template <> float f(float a) { return -a; } };\n",
			wantHeader: "struct S { template <typename T> T f(T a) { return a; } float f(float a) { return -a; } };\n",
		},
		{
			name: "includes", header: "#include <metal_stdlib>\n# include <simd/simd.h> // a\nint a;\n",
			wantHeader: " \n // a\nint a;\n",
		},
		{
			name: "unrolled loops", header: "#define UNROLL _Pragma(\"clang loop unroll(full)\")\n",
			wantHeader: "#define UNROLL _Pragma(\"GCC unroll 64\" )\n",
			body: "#pragma unroll\nfor (;;) {}\n# pragma clang loop unroll(full) // all\nfor (;;) {}\n#pragma " +
				"clang loop vectorize(enable)\nfor (;;) {}",
			wantBody: "#pragma GCC unroll 64\nfor (;;) {}\n#pragma GCC unroll 64 \nfor (;;) {}\n#pragma clang " +
				"loop vectorize(enable)\nfor (;;) {}",
		},
		{
			name: "other kernels and instantiations",
			header: "template <typename T> kernel void g(device T* p) {}\ntemplate [[host_name(\"g\")]] kernel " +
				"void g<float>(device float*);\ntemplate void h<float>(device float*);\n",
			wantHeader: "template <typename T> void g( T* p) {}\n \ntemplate void h<float>( float*);\n",
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			header, body := hostBody(t, test.header, test.body, Conversions{})
			require.Equal(t, strings.Count(test.header, "\n"), strings.Count(header, "\n"))
			require.Equal(t, strings.Count(test.body, "\n"), strings.Count(body, "\n"))
			require.Equal(t, test.wantHeader, squeeze.ReplaceAllString(header, " "))
			require.Equal(t, test.wantBody, strings.ReplaceAll(squeeze.ReplaceAllString(body, " "), "() ;", "();"))
		})
	}
}

func TestSwizzlesBecomeVectors(t *testing.T) {
	const header = "#define M(v) v.xy = v.yx\nstruct S { float bg; float3 zw; };\n"
	newHeader, body := hostBody(t, header,
		"auto a = u.yx; v.x = u[0].rgb.x + p->wzyx.x + f(v.xyz); v.xyz[1] = 0; v.xx++; M((v.xxx)); s.bg = s.zw.x; v.rgx = v.xyzw.xy; "+
			"v.xy = u.yx; if (b) v.xy = c ? u.yx : u.yy;", Conversions{Swizzles: true})
	require.Equal(t, header, newHeader)
	require.Equal(t, "auto a = u.yx(); v.x = u[0].rgb().x + p->wzyx().x + f(v.xyz()); v.xyz[1] = 0; v.xx++; M((v.xxx)); "+
		"s.bg = s.zw.x; v.rgx = v.xyzw().xy; v.xy = u.yx; if (b) v.xy = c ? u.yx() : u.yy();", body)
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
		{
			"helper", kernel("template <typename U> void f() { threadgroup U s[4]; }", ""), "1:34",
			"only be declared in a kernel",
		},
		{"member", kernel("struct S { threadgroup float a; };", ""), "1:12", "only be declared in a kernel"},
		{"behind the type", kernel("", "float threadgroup a[4];"), "3:7", "before the type"},
		{"mixed with pointers", kernel("", "threadgroup float a, *b;"), "3:24", "separate statements"},
		{"mixed with pointers first", kernel("", "threadgroup float *b, a;"), "3:23", "separate statements"},
		{"in a macro", kernel("#define S threadgroup float a[4]", ""), "1:11", "in a macro"},
		{"MLX's header", kernel("#include \"mlx/backend/metal/kernels/utils.h\"", ""), "1:10", "is not part of Metal's library"},
		{"function constant", kernel("constant bool b [[function_constant(0)]];", ""), "1:17", "has no value"},
		{"overloads with different bodies", kernel("float f(device float* p) { return 1; } float f(threadgroup "+
			"float* p) { return 2; }", ""), "1:40", "differs from an earlier one in address spaces and body"},
		{"no kernel", "float f;", "1:1", "no kernel"},
		{"threadgroup argument", "kernel void f(device float* y, threadgroup float* s) {}", "1:51", "has no size"},
		{"no instantiation", "template <typename T> kernel void f(device T* y) {}", "1:35", "never instantiated"},
		{"wrong instantiation", "template <typename T, int N> kernel void f(device T* y) {}\ntemplate " +
			"[[host_name(\"f\")]] kernel void f<float>(device float*);", "2:41", "gives 1 template arguments"},
		{
			"buffer number", "kernel void f(device float* y [[buffer(64)]]) {}", "1:29",
			"the buffer number is 64; it must be from 0 to 63",
		},
		{"broken", "kernel void f(device float* y) {", "1:32", "never closed"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := Host(test.text, Conversions{})
			var problem *msl.Error
			require.ErrorAs(t, err, &problem)
			require.Contains(t, problem.Message, test.want)
			require.True(t, strings.HasPrefix(err.Error(), test.at+": "), err.Error())
		})
	}
}
