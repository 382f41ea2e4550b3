package msl

import (
	"io/fs"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

// Constructs with which a shader can escape the checker, read other files or run code before its kernel are errors.
func TestForbidden(t *testing.T) {
	for text, want := range map[string]string{
		`__attribute__((no_sanitize("thread"))) void f(device float* y) { y[0] = 1; }`:                "f.metal:1:16: the attribute no_sanitize is not allowed in a shader; remove it",
		"#define BLIND __attribute__((always_inline, __no_sanitize__(\"thread\")))":                   "f.metal:1:45: the attribute __no_sanitize__ is not allowed",
		"#define ATTRIBUTE __attribute__":                                                             "f.metal:1:19: __attribute__ must be followed by its attributes in two pairs of parentheses",
		"#define always_inline no_sanitize(\"thread\")":                                               "f.metal:1:1: the macro always_inline has the name of an attribute",
		"#define BLIND [[gnu::no_sanitize(\"thread\")]]":                                              "f.metal:1:17: the attribute gnu::no_sanitize is not allowed",
		"[[ __gnu__ /* */ :: __no_sanitize_thread__ ]] void f() {}":                                   "f.metal:1:4: the attribute __gnu__::__no_sanitize_thread__ is not allowed",
		"[[gnu::no_sanitize_address]] void f() {}":                                                    "f.metal:1:3: the attribute gnu::no_sanitize_address is not allowed",
		"[[using gnu: no_sanitize(\"undefined\")]] void f() {}":                                       "f.metal:1:3: an attribute cannot begin with using",
		"[[clang::disable_sanitizer_instrumentation]] void f() {}":                                    "f.metal:1:3: the attribute clang::disable_sanitizer_instrumentation is not allowed",
		"[[no_sanitize(\"thread\")]] void f() {}":                                                     "f.metal:1:3: Metal has no attribute no_sanitize",
		"__attribute__((unused, disable_sanitizer_instrumentation)) void f() {}":                      "f.metal:1:24: the attribute disable_sanitizer_instrumentation is not allowed",
		"__declspec(no_sanitize_address) void f() {}":                                                 "f.metal:1:1: __declspec is not part of Metal",
		"#define BLIND no_sanitize_thread":                                                            "f.metal:1:15: the attribute no_sanitize_thread is not allowed",
		"[[foo]] inline void f() {}":                                                                  "f.metal:1:3: Metal has no attribute foo; correct its name, or remove it",
		"inline void f() {\n  [[maybe_unused, pack(4)]] int i; }":                                     "f.metal:2:19: Metal has no attribute pack",
		"struct A { float4 v [[position]] [[ /* */ flatt]]; };":                                       "f.metal:1:43: Metal has no attribute flatt",
		"[[vendor::unused]] inline void f() {}":                                                       "f.metal:1:3: Metal has no attribute vendor",
		"__attribute__((constructor)) void f() {}":                                                    "the attribute constructor is not allowed",
		"inline void f() { __asm__ volatile(\"nop\"); }":                                              "f.metal:1:19: Metal has no assembly; remove __asm__",
		"inline void f() { __as\\\nm__(\"nop\"); }":                                                   "f.metal:1:19: the word __as continues after a line continuation",
		"extern \"C\" int puts(const thread char*);":                                                  `f.metal:1:1: extern "C" is allowed for structures and kernels only`,
		"extern \"C\" { int puts(const thread char*); }":                                              `f.metal:1:1: extern "C" is allowed`,
		"#pragma GCC optimize(\"O0\")":                                                                "f.metal:1:1: the pragma GCC optimize is not allowed in a shader",
		"#pragma clang attribute push(__attribute__((no_sanitize(\"thread\"))), apply_to = function)": "the pragma clang attribute is not allowed",
		"#pragma weak f": "the pragma weak is not allowed",
		"_Pragma(\"GCC pch_preprocess \\\"x\\\"\")": "f.metal:1:1: the pragma GCC pch_preprocess " +
			"is not allowed",
		"#define P(x) _Pragma(#x)": "f.metal:1:14: _Pragma needs the text of the " +
			"pragma as one literal",
		"%:include \"/etc/passwd\"": "f.metal:1:1: %: stands for # in C++",
		"#include NAME":             "f.metal:1:1: #include needs a name in quotes",
		"#embed \"f.metal\"":        "f.metal:1:1: #embed is not part of Metal",
		"#include_next \"f.metal\"": "#include_next is not part of Metal",
		"#include \"device\"":       `f.metal:1:10: "device" is not a regular file`,
		"struct A { int v; A() { v = 1; } };\nconstant A a;": "f.metal:2:10: A is not constexpr and would " +
			"run before any kernel",
		"struct A { int v; A(int n) { v = n; } };\nconstant A a(1);":                "f.metal:2:10: A is not constexpr",
		"struct A { int v; ~A() { v = 1; } };\nnamespace n { constant A a = {1}; }": "f.metal:2:24: A is not constexpr",
		"inline int f() { return 1; }\nconstant int a = 2 * f();":                   "f.metal:2:22: f is not constexpr",
		"inline int f() { return 1; }\nstruct A { static constant int a = f(); };":  "f is not constexpr",
	} {
		fsys := tree(map[string]string{"f.metal": text + "\n" + user})
		fsys["device"] = &fstest.MapFile{Mode: fs.ModeDevice}
		_, err := Parse(fsys, "f.metal")
		require.ErrorContains(t, err, want, text)
	}
}

// Constructs that shaders of other projects contain are allowed.
func TestNotForbidden(t *testing.T) {
	for _, text := range []string{
		"#if 0\n__attribute__((no_sanitize(\"thread\")))\n#endif",
		"// __asm__ __attribute__((constructor))\nconstant char text[] = \"__asm__\";",
		"#define INLINE inline __attribute__((__always_inline__, aligned(16)))",
		"struct __attribute__((packed)) A { char c; int i; };",
		"extern \"C\" struct A { int v; };",
		"template <typename T> struct A { T v; template <int> };",
		"extern \"C\" { struct A { int v; }; kernel void k(device float* y) { y[0] = 1; } }",
		"#pragma METAL fp math_mode(safe)\n#pragma unroll(4)\n#pragma clang loop unroll(full)\n#pragma " +
			"unused(x)\n#pragma",
		"#define FOR_UNROLL(x) _Pragma(\"clang loop unroll(full)\") for (x)",
		"#line 7 \"other.metal\"\n# 8 \"other.metal\" 2\n#",
		"#define SLOT(n) buffer(n)\n#define MARKED(a) [[a]]\nstruct A { device float* x [[SLOT(0), id(1)]]; int b MARKED(foo); };",
		"struct V { float4 p [[position, invariant]]; float d [[user(locn0)]] [[sample_no_perspective]]; };",
		"[[nodiscard]] [[gnu::always_inline]] inline int f(int i) { int a[4] = {}; return a[a[i]]; }",
		"#define LONG a\\\n  b\nconstant int c = 5 % (2);",
		"struct A { int v; constexpr A(int n) : v(n) {} };\nconstant A a(1);\nconstant A b = A(2);",
		"struct A { int v; A(int n) { v = n; } };\nA make(int n);\ninline A other() { return A(1); }",
		"constexpr int f() { return 1; }\nconstant int a = f();\nconstexpr constant int b = f();",
		"inline float f(float x) { return x; }\nconstant float a[] = {1, 2};\ntypedef float (*g)(float);",
		"inline float f(float x) { return x; }\ntemplate <typename T> float g(T x) { static_assert(sizeof(x) == 4, " +
			"\"f(1)\"); return f(x); }",
	} {
		_, err := Parse(tree(map[string]string{"f.metal": text + "\n" + user}), "f.metal")
		require.NoError(t, err, text)
	}
}

// A #line directive does not change the positions in messages.
func TestLineNumbersAreIgnored(t *testing.T) {
	_, err := Parse(tree(map[string]string{"f.metal": "#line 70 \"other.metal\"\n# 80 \"another.metal\"\n" + user +
		"kernel void g() {}\n"}), "f.metal")
	require.ErrorContains(t, err, "f.metal:4:13: the kernel g has no output")
}
