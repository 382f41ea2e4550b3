package sanitizer

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/customkernels/internal/checker"
	"github.com/mlxgrad/mlxgrad/customkernels/internal/toolchain"
	"github.com/mlxgrad/mlxgrad/internal/oldlinux"
	"github.com/mlxgrad/mlxgrad/internal/skip"
)

// The layers that stop an attempt, in the order in which it meets them.
const (
	byText     = "the refusals of shader text"
	byCompiler = "the compiler"
	byLimits   = "limits"
	byImports  = "the refusal of library functions"
	byLandlock = "Landlock"
	bySignals  = "Landlock ABI 6"
	bySeccomp  = "seccomp, before the start"
	byWorker   = "seccomp, in the worker"
	byResult   = "the check of the result"
	byChecker  = "a finding of the checker"
)

// inForce reports whether this machine has a layer.
func inForce(layer string) bool {
	restrictions, _ := Containment()
	needed := map[string]string{byLandlock: "Landlock", bySignals: "signals", bySeccomp: "seccomp", byWorker: "seccomp"}[layer]
	return strings.Contains(restrictions, needed)
}

// An attempt tries to reach something outside of the checker, or to hide a bug from it. run returns an error, a finding
// or an error number, whose text must contain says.
type attempt struct {
	name, layer string
	run         func(t *testing.T) string
	says        string
}

// Each attempt is refused or contained by one layer. Attempts that an earlier layer would stop are given to the later
// layer directly: C++ for the worker, and a program for the confined start.
func TestContainment(t *testing.T) {
	if _, err := Compiler(); err != nil {
		skip.Missing(t, skip.CXX, err)
	}
	for _, a := range attempts(t) {
		t.Run(a.layer+"/"+a.name, func(t *testing.T) {
			if !inForce(a.layer) {
				skip.Platform(t, "this machine lacks "+a.layer)
			}
			require.Contains(t, a.run(t), a.says, "expected from %s", a.layer)
		})
	}
}

// Without Landlock, and also without seccomp, the other layers stop what they stop elsewhere. Attempts that the text or the
// compiler refuses are left out: no restriction of a process matters for them.
func TestContainmentOnOldLinux(t *testing.T) {
	if _, err := Compiler(); err != nil {
		skip.Missing(t, skip.CXX, err)
	}
	program, err := os.Executable()
	require.NoError(t, err)
	refused := []string{byText, byCompiler}
	skipped := "^TestContainment$/^(" + strings.ReplaceAll(strings.Join(refused, "|"), " ", "_") + ")$"
	for name, c := range map[string]struct {
		seccomp bool
		lacking []string // layers
	}{
		"with seccomp":    {true, []string{byLandlock, bySignals}},
		"without seccomp": {false, []string{byLandlock, bySignals, bySeccomp, byWorker}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // the attempts wait for time limits
			var out bytes.Buffer
			cmd := exec.Command(program, "-test.run", "^TestContainment$", "-test.skip", skipped, "-test.v")
			cmd.Stdout, cmd.Stderr = &out, &out
			require.NoError(t, oldlinux.Run(cmd, !c.seccomp), &out)
			lacking, stopped := 0, 0
			for _, a := range attempts(t) {
				switch {
				case slices.Contains(c.lacking, a.layer):
					lacking++
					require.Contains(t, out.String(), "this machine lacks "+a.layer)
				case !slices.Contains(refused, a.layer):
					stopped++
				}
			}
			require.Equal(t, lacking, strings.Count(out.String(), "    --- SKIP"))
			require.Equal(t, stopped, strings.Count(out.String(), "    --- PASS"), &out)
			t.Logf("%d attempts are stopped", stopped)
		})
	}
}

func attempts(t *testing.T) []attempt {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { listener.Close() })
	port := listener.Addr().(*net.TCPAddr).Port
	home := t.TempDir()
	secret := filepath.Join(home, "secret")
	require.NoError(t, os.WriteFile(secret, []byte("secret"), 0o600))
	inKernel := func(code string) func(*testing.T) string { return kernel(code+" y[i] = 0;", "") }
	outside := func(code string) func(*testing.T) string { return kernel("y[i] = 0;", code) }
	return []attempt{
		// Assembly and attributes.
		{"asm", byText, inKernel(`asm("nop");`), "remove asm"},
		{"asm volatile with underscores", byText, inKernel(`__asm__ __volatile__("nop");`), "remove __asm__"},
		{"asm in a macro", byText, outside("#define A __asm\nvoid f() { A(\"nop\"); }"), "remove __asm"},
		{"asm from pasted words", byText, outside("#define P(a, b) a##b\nvoid f() { P(as, m)(\"nop\"); }"), "remove asm"},
		{
			"asm in the executor, from pasted words", byText, executor("#define P(a, b) a##b\nvoid f() { P(__as, m__)(\"nop\"); }"),
			"remove __asm__",
		},
		{"asm as the name of a function", byText, outside(`int f(int) __asm__("system");`), "remove __asm__"},
		{"asm over two lines", byText, outside("void f() { as\\\nm(\"nop\"); }"), "continues after a line continuation"},
		{"__attribute__((constructor))", byText, outside("__attribute__((constructor)) void f() {}"), "attribute constructor"},
		{"[[using gnu: constructor]]", byText, outside("[[using gnu: constructor]] void f() {}"), "cannot begin with using"},
		{"[[gnu::ifunc]]", byText, outside(`[[gnu::ifunc("g")]] void f();`), "gnu::ifunc"},
		{"constructor of a variable", byText, outside("struct A { int v; A() { v = 1; } };\nconstant A a;"), "would run before"},
		{"no_sanitize", byText, outside(`__attribute__((no_sanitize("thread"))) void f() {}`), "no_sanitize"},
		{"[[no_sanitize]]", byText, outside(`[[no_sanitize("thread")]] void f() {}`), "no attribute no_sanitize"},
		{"no_sanitize from pasted words", byText, outside("#define P(a, b) a##b\n[[gnu::P(no_san, itize)(\"thread\")]] void f() {}"), "gnu::"},
		{"an unknown attribute", byText, outside("[[foo]] void f() {}"), "f.metal:3:3: Metal has no attribute foo"},
		{"[[clang::no_sanitize]]", byText, outside(`[[clang::no_sanitize("thread")]] void f() {}`), "no_sanitize"},
		{"#pragma GCC optimize", byText, outside("#pragma GCC optimize(\"O0\")"), "GCC optimize"},
		{
			"#pragma clang attribute", byText,
			outside(`#pragma clang attribute push(__attribute__((disable_sanitizer_instrumentation)), apply_to = function)`),
			"clang attribute",
		},
		{"_Pragma of pasted text", byText, outside("#define P(x) _Pragma(#x)\nP(GCC optimize(\"O0\"))"), "GCC optimize"},
		{"__builtin_return_address", byText, inKernel("*(device uint*)__builtin_return_address(0) = 0;"), "__builtin_return_address"},
		{"__builtin_printf", byText, inKernel(`__builtin_printf("ok");`), "__builtin_printf"},
		{"extern C", byText, outside(`extern "C" int system(const char*);`), `extern "C"`},

		// The checker's own names.
		{"a call of the checker", byText, inKernel("mlxg_checked_fence(0, 0, 0);"), "name of the checker"},
		{"a definition of the instrumentation", byText, outside("void __tsan_write4(void*) {}"), "name of the checker"},

		// Library functions.
		{"system", byCompiler, inKernel(`system("true");`), "system"},
		{"fork", byCompiler, inKernel("fork();"), "fork"},
		{"syscall", byCompiler, inKernel("syscall(57);"), "syscall"},
		{"system with a declaration", byCompiler, kernel("system(0); y[i] = 0;", "int system(const thread char*);"), "system"},
		{
			"std::terminate", byImports, kernel("if (x[i] > 9) std::terminate(); y[i] = 0;", "namespace std { void terminate(); }"),
			"terminate",
		},
		{"__builtin_fork in the executor", byImports, executor("int f() { return __builtin_fork(); }"), "fork"},

		// Files and bombs of the preprocessor and the compiler.
		{"#include of a device", byText, outside(`#include "/dev/zero"`), "absolute path"},
		{"#include of standard input", byText, outside(`#include "/dev/stdin"`), "absolute path"},
		{"#include of a parent folder", byText, outside(`#include "../../../../../etc/passwd"`), "cannot be read"},
		{"#include of a macro", byText, outside("#define F \"/etc/passwd\"\n#include F"), "needs a name in quotes"},
		{"#include of itself", byCompiler, outside(`#include "f.metal"`), "nested"},
		{"#embed", byText, outside(`#embed "f.metal"`), "not part of Metal"},
		{"a macro bomb", byLimits, outside(bomb()), "larger than 64 MiB"},
		{
			"an endless template", byCompiler,
			kernel("y[i] = N<0>::v;", "template <int n> struct N { enum { v = N<n + 1>::v }; };"), "depth",
		},
		{"a template bomb", byLimits, templateBomb, "context deadline exceeded"},
		{"#include /etc/passwd in the compiler", byLandlock, compiles(`#include "/etc/passwd"`), "Permission denied"},
		{"#include /dev/zero in the compiler", byLandlock, compiles(`#include "/dev/zero"`), "Permission denied"},
		{"4 GiB of memory in the compiler", byLimits, compiler("memory"), "errno 12\n"},
		{"a file of 1 GiB from the compiler", byLimits, compiler("file"), "file size limit exceeded"},

		// A program in the confined start, without the worker's own restrictions.
		{"read /etc/passwd", byLandlock, program("read", "/etc/passwd"), "errno 13\n"},
		{"read a file of the user", byLandlock, program("read", secret), "errno 13\n"},
		{"read the environment of the parent", byLandlock, program("read", fmt.Sprintf("/proc/%d/environ", os.Getpid())), "errno 13\n"},
		{"list a folder", byLandlock, program("read", home), "errno 13\n"},
		{"write a file", byLandlock, program("write", filepath.Join(home, "new")), "errno 13\n"},
		{"remove a file", byLandlock, program("remove", secret), "errno 13\n"},
		{"connect by TCP", bySeccomp, program("connect", fmt.Sprint(port)), "errno 1\n"},
		{"start a shell", byLandlock, program("execute", "/bin/sh"), "errno 13\n"},
		{"kill the parent", bySignals, program("kill", fmt.Sprint(os.Getpid())), "errno 1\n"},
		{"trace the parent", bySeccomp, program("trace", fmt.Sprint(os.Getpid())), "errno 1\n"},
		{"read the memory of the parent", bySeccomp, program("memory of", fmt.Sprint(os.Getpid())), "errno 1\n"},
		{"a new namespace", bySeccomp, program("namespace", ""), "errno 1\n"},

		// C++ in the worker.
		{"open in the worker", byWorker, worker(`call(SYS_openat, -100, (long)"/lib", 0)`), "errno 1\n"},
		{"execve in the worker", byWorker, worker(`call(SYS_execve, (long)"/proc/self/exe", 0, 0)`), "errno 1\n"},
		{"fork in the worker", byWorker, worker("call(SYS_clone, 17)"), "errno 1\n"},
		{"socket in the worker", byWorker, worker("call(SYS_socket, 2, 2)"), "errno 1\n"},
		{"kill in the worker", byWorker, worker(fmt.Sprintf("call(SYS_kill, %d, 0)", os.Getpid())), "errno 1\n"},
		{"chmod in the worker", byWorker, worker(fmt.Sprintf("call(SYS_fchmodat, -100, (long)%q, 0777)", secret)), "errno 1\n"},
		{"raise limits in the worker", byWorker, worker("call(SYS_prlimit64, 0, 7, 0, 0)"), "errno 1\n"},
		{"forged messages", byWorker, worker(`call(SYS_write, 2, (long)"MGCK", 4)`), "errno 1\n"},
		{"fill the memory", byLimits, worker("call(SYS_mmap, 0, 1l << 40, 3, 0x22, -1)"), "errno 12\n"},
		{"fill the disk", byLimits, worker("({ while (call(SYS_write, 4, 0x400000, 4096) > 0) {} 0; })"), "file size limit exceeded"},
		{"a forged result", byResult, worker(`({ call(SYS_write, 4, 0x400000, 4096); call(SYS_exit_group, 0); })`), "not a result"},
		{"an endless loop", byChecker, worker("({ while (true) {} 0; })"), "kind 10"},
		{
			"a write to the checker's state", byChecker, worker("({ static long mine; long* volatile p = &mine; p[2048] = 0; 0; })"),
			"kind 5",
		},
	}
}

// kernel returns a function that checks a kernel with a body and declarations, and returns the error or the findings.
func kernel(body, declarations string) func(t *testing.T) string {
	return func(t *testing.T) string { return checkBody(t.Context(), t, body, declarations) }
}

func checkBody(ctx context.Context, t *testing.T, body, declarations string) string {
	t.Helper()
	text := "#include <metal_stdlib>\nusing namespace metal;\n" + declarations + "\nkernel void k(device const float* x, device " +
		"float* y, uint i [[thread_position_in_grid]]) { " + body + " }\n"
	lib, err := LoadNative(ctx, fstest.MapFS{"f.metal": {Data: []byte(text)}}, "f.metal", NativeOptions{})
	if err != nil {
		return err.Error()
	}
	k, err := lib.Kernel("k")
	if err != nil {
		return err.Error()
	}
	l := Launch{Grid: [3]int{4, 1, 1}, Threadgroup: [3]int{4, 1, 1}, Outputs: []Output{{Shape: []int{4}, DType: Float32}}}
	r, err := k.Sanitize(ctx, l, Config{}, floats(1, 2, 3, 4))
	if err != nil {
		return err.Error()
	}
	return fmt.Sprint(r.Findings)
}

// templateBomb gives a text to the compiler that it cannot finish, and a short time.
func templateBomb(t *testing.T) string {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	return checkBody(ctx, t, "y[i] = B<40, 0>::v;", "template <int d, long n> struct B { enum : long { v = B<d - 1, 2 * n>::v + B<d - 1, "+
		"2 * n + 1>::v }; };\ntemplate <long n> struct B<0, n> { enum : long { v = n }; };")
}

// bomb returns macros whose expansion is larger than the limit of 64 MiB.
func bomb() string {
	return "#define A " + strings.Repeat("x ", 1<<15) + "\n" + strings.Repeat("A\n", 1100)
}

// executor returns a function that compiles a text for the host executor, which runs it in this process.
func executor(text string) func(t *testing.T) string {
	return func(t *testing.T) string {
		cache := toolchain.Cache[string]{Load: func(path string) (string, error) { return path, nil }}
		_, err := cache.Compile(t.Context(), text)
		return fmt.Sprint(err)
	}
}

// worker returns a function that runs a C++ expression in the checker's worker, with system calls by number. It returns
// the error number of the expression, the error of the run, or a finding.
func worker(expression string) func(t *testing.T) string {
	text := `#include "metal_host.h"
#include <sys/syscall.h>
static long call(long n, long a = 0, long b = 0, long c = 0, long d = 0, long e = 0, long f = 0) {
#if defined(__x86_64__)
  long r;
  register long r10 __asm__("r10") = d;
  register long r8 __asm__("r8") = e;
  register long r9 __asm__("r9") = f;
  __asm__ volatile("syscall" : "=a"(r) : "a"(n), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9) : "rcx", "r11", "memory");
  return r;
#else
  register long x8 __asm__("x8") = n;
  register long x0 __asm__("x0") = a;
  register long x1 __asm__("x1") = b;
  register long x2 __asm__("x2") = c;
  register long x3 __asm__("x3") = d;
  register long x4 __asm__("x4") = e;
  register long x5 __asm__("x5") = f;
  __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5) : "memory");
  return x0;
#endif
}
namespace { void mlxg_invoke(void* const* b, const mlxg::thread_position&) { *static_cast<int*>(b[0]) = int(` + expression + `); } }
extern "C" const mlxg::entry mlxgrad_entry = { "attempt", 1, mlxg_invoke };
`
	return func(t *testing.T) string {
		p, err := checker.Build(t.Context(), text)
		require.NoError(t, err)
		r, err := p.Run(t.Context(), checker.Launch{
			Grid: [3]int{1, 1, 1}, Threadgroup: [3]int{1, 1, 1}, Schedules: 1, Timeout: 2 * time.Second,
			Buffers: []checker.Buffer{{Size: 4, Cell: 4, Element: 4, Writable: true}},
		})
		if err != nil {
			return err.Error()
		}
		for _, f := range r.Findings {
			return fmt.Sprintf("kind %d of %+v", f.Kind, f)
		}
		require.Len(t, r.Outputs, 1)
		return fmt.Sprintf("errno %d\n", -int(int32(uint32(r.Outputs[0][0])|uint32(r.Outputs[0][1])<<8|uint32(r.Outputs[0][2])<<16|
			uint32(r.Outputs[0][3])<<24)))
	}
}
