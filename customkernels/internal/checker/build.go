package checker

import (
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/mlxgrad/mlxgrad/customkernels/internal/metalstd"
	"github.com/mlxgrad/mlxgrad/customkernels/internal/toolchain"
	"github.com/mlxgrad/mlxgrad/customkernels/internal/translate"
)

// worker holds the C++ source of the checker's runtime. It is compiled on this machine, by the shaders' compiler.
//
//go:embed worker
var worker embed.FS

// Program is a shader that is compiled for the checker. Goroutines may use it concurrently.
type Program struct {
	Path     string // executable
	Compiler string // path and version
	Flags    string
	Source   string // file name of the text in the debug information

	tools   *toolchain.Toolchain
	text    string
	watched bool // has only the findings of Kind.inWatched

	symbolsOnce sync.Once
	symbols     *symbols
	symbolsErr  error
}

// sourceName is the file name of the text in the debug information.
const sourceName = "shader.cpp"

// runtimeFlags are the compiler's flags for the runtime.
var runtimeFlags = []string{
	"-std=c++20", "-O2", "-fno-pie", "-fno-exceptions", "-fno-rtti", "-fno-strict-aliasing",
	"-fno-stack-protector", "-fvisibility=hidden", "-w",
}

// linkFlags link the program at fixed addresses, so that program counters need no translation, and redirect memory
// copies to the checker's runtime.
var linkFlags = []string{"-no-pie", "-Wl,--wrap=memcpy,--wrap=memmove,--wrap=memset", "-o", "program", "shader.o"}

// fewLibraries are the libraries that almost every program needs. Reading the C++ library would take as long as the rest
// of linking.
var fewLibraries = []string{"-nodefaultlibs", "-lm", "-lc", "-lgcc"}

// variant selects how a shader is compiled.
type variant struct {
	// zero is set if local variables begin with zeros, and not with the compiler's pattern, which is a huge number or a
	// NaN.
	zero bool
	// filled is set if the variables that [fillVariables] finds begin with a byte that the launch selects.
	filled bool
	// watched programs are not optimized. Instead of the accesses to buffers, they report the accesses outside of
	// a thread's own variables, signed arithmetic that overflows and, if filled, indices that wrap around. They
	// distinguish barriers and SIMD-group functions by call path, and the other programs distinguish them by line.
	watched bool
	// separate is set if a store of both arms of an if statement stays two stores.
	separate bool
}

// shaderFlags returns the compiler's flags for a shader. Optimization is mild: the program has the accesses of the
// text on their lines, but keeps values in registers, because each access is a function call. -fstack-clash-protection
// touches every page of a large stack frame, so that an overflow reaches the guard page and not the stack of another
// fiber. -fno-optimize-sibling-calls keeps a call in tail position a call, because its return address tells the line.
func shaderFlags(t *toolchain.Toolchain, v variant) []string {
	if v.watched {
		return watchedFlags(t)
	}
	variables := "-ftrivial-auto-var-init=pattern"
	if v.zero {
		variables = "-ftrivial-auto-var-init=zero"
	}
	f := append([]string{
		"-O1", "-g1", "-gdwarf-4", "-DMLXG_CHECKED", "-fsanitize=thread", "-fno-pie",
		"-fstack-clash-protection", "-fno-optimize-sibling-calls",
	}, t.Flags()...)
	if t.ClangVersion() >= 16 {
		// Otherwise the last array of a structure has no bounds, whatever its length.
		f = append(f, "-fstrict-flex-arrays=1")
	}
	if t.Clang() {
		// Without alignment: clang does not check copies of whole vectors, the most important case. The flag also makes
		// it reload values that are in registers, which would count as traffic.
		return append(f, "-fsanitize=array-bounds,shift-exponent", "-Xclang", variables,
			"-mllvm", "-tsan-instrument-read-before-write=1", "-mllvm", "-tsan-instrument-func-entry-exit=0")
	}
	if v.separate {
		f = append(f, "-fno-tree-sink", "-fno-tree-cselim")
	}
	// Nothing reads the locations of variables or the types of the headers, which take a third of the compile time.
	return append(f, "-fno-var-tracking", "-femit-struct-debug-baseonly", "-fcaller-saves",
		"-fsanitize=alignment,bounds-strict,shift-exponent",
		variables, "--param", "tsan-instrument-func-entry-exit=0")
}

// watchedFlags returns the compiler's flags for a watched program. The flags of kernel-address need no runtime but the
// functions of worker/own.h.
func watchedFlags(t *toolchain.Toolchain) []string {
	f := append([]string{
		"-O0", "-g1", "-gdwarf-4", "-DMLXG_CHECKED", "-fno-pie", "-fstack-clash-protection", "-fno-omit-frame-pointer",
		"-fsanitize=kernel-address,signed-integer-overflow", "-fno-sanitize-address-use-after-scope",
	}, t.Flags()...)
	f = slices.DeleteFunc(f, func(flag string) bool { return flag == "-fwrapv" }) // which turns the overflow check off
	if t.Clang() {
		return append(f, "-mllvm", "-asan-stack=1", "-mllvm", "-asan-globals=0", "-mllvm", "-asan-mapping-offset="+shadowOffset,
			"-mllvm", "-asan-instrumentation-with-call-threshold=0", "-Xclang", "-ftrivial-auto-var-init=zero")
	}
	return append(f, "--param", "asan-stack=1", "--param", "asan-globals=0", "-fasan-shadow-offset="+shadowOffset,
		"--param", "asan-instrumentation-with-call-threshold=0", "-ftrivial-auto-var-init=zero")
}

// shadowOffset is own_shadow_offset of worker/own.h.
const shadowOffset = "0x7fff8000"

// programs holds the programs of this process, with their debug information.
var programs toolchain.Cache[*Program]

// Build compiles a shader for the checker, or finds it in the cache. text is the translation unit of translate.Host.
// The error is a *toolchain.CompileError if the compiler rejects the text, and toolchain.ErrNoCompiler without a
// compiler. On systems other than Linux, Build returns an error.
func Build(ctx context.Context, text string) (*Program, error) {
	t, err := toolchain.FindToolchain()
	if err != nil {
		return nil, err
	}
	return BuildWith(ctx, t, text)
}

// BuildWith is Build with a compiler. It also compiles the program that [Program.Run] compares with, at the same time.
func BuildWith(ctx context.Context, t *toolchain.Toolchain, text string) (*Program, error) {
	compared := make(chan struct{})
	go func() {
		defer close(compared)
		_, _ = programFor(ctx, t, text, variant{zero: true, filled: true, watched: true}) // Run reports its error
	}()
	p, err := programFor(ctx, t, text, variant{})
	<-compared
	return p, err
}

// programFor returns the program of a variant. Concurrent callers share one compilation.
func programFor(ctx context.Context, t *toolchain.Toolchain, text string, v variant) (*Program, error) {
	if runtime.GOOS != "linux" {
		return nil, fmt.Errorf("checker: unsupported operating system %s; the checker runs on Linux", runtime.GOOS)
	}
	// Each access is a function call, so unrolling would only add thousands of calls.
	text = strings.ReplaceAll(text, translate.Unroll, "GCC unroll 1")
	source := text
	if v.filled {
		source = fillVariables(text)
	}
	if v.filled && v.watched {
		source = checkIndices(source)
	}
	flags := shaderFlags(t, v)
	key := toolchain.Hash(append(append([]string{t.Key(), workerHash(), source}, flags...), linkFlags...)...)
	obtain := func(ctx context.Context) (*Program, error) { return obtainProgram(ctx, t, key, text, source, v) }
	p, err := programs.Share(ctx, key, toolchain.KernelName(text), obtain)
	if err == nil && !toolchain.Kept(p.Path) { // the cache was removed, or is another one
		return obtain(ctx)
	}
	return p, err
}

// obtainProgram finds the program of a variant in the cache, or compiles it.
func obtainProgram(ctx context.Context, t *toolchain.Toolchain, key, text, source string, v variant) (*Program, error) {
	flags := shaderFlags(t, v)
	path, ok := toolchain.Find(key + ".checked")
	if output, refused := toolchain.Refused(key); refused && !ok {
		return nil, &toolchain.CompileError{Kernel: toolchain.KernelName(text), Compiler: t.String(), Output: output}
	}
	if !ok {
		err := toolchain.InCache(func(dir string) error {
			path = filepath.Join(dir, key+".checked")
			return build(ctx, t, dir, path, source, flags)
		})
		var refused *toolchain.CompileError
		if errors.As(err, &refused) {
			toolchain.Refuse(key, refused.Output)
		}
		if err != nil {
			return nil, err
		}
	}
	return &Program{
		Path: path, Compiler: t.String(),
		Flags: strings.Join(flags, " "), Source: sourceName, tools: t, text: text, watched: v.watched,
	}, nil
}

// build compiles and links the executable in a work folder, and renames it into the cache last.
func build(ctx context.Context, t *toolchain.Toolchain, dir, path, text string, flags []string) error {
	work, remove, err := toolchain.WorkFolder(dir, "checked-")
	if err != nil {
		return fmt.Errorf("checker: cache: %w", err)
	}
	defer remove()
	if err := os.WriteFile(filepath.Join(work, sourceName), []byte(text), 0o600); err != nil {
		return fmt.Errorf("checker: cache: %w", err)
	}
	name := toolchain.KernelName(text)
	if err := metalstd.WriteHost(work); err != nil {
		return fmt.Errorf("checker: cache: %w", err)
	}
	if err := writeWorker(work); err != nil {
		return fmt.Errorf("checker: cache: %w", err)
	}
	if err := t.RefuseExpanded(ctx, work, name, sourceName, text, flags); err != nil {
		return err
	}
	object := make(chan error, 1)
	library := filepath.Join(dir, toolchain.Hash(t.Key(), workerHash(), strings.Join(runtimeFlags, " "))+".worker.o")
	go func() { object <- buildRuntime(ctx, t, work, name, library) }()
	err = t.RunOnHeaders(ctx, work, name, metalstd.HeaderOf(text), workerHash(), flags, "-c", "-o", "shader.o", sourceName)
	if rerr := <-object; err == nil {
		err = rerr
	}
	if err != nil {
		return err
	}
	if err := toolchain.RefuseImports(filepath.Join(work, "shader.o"), name); err != nil {
		return err
	}
	args := append(slices.Clone(linkFlags), library)
	if t.Run(ctx, work, name, append(args, fewLibraries...)...) != nil {
		if err := t.Run(ctx, work, name, append(args, "-lm")...); err != nil {
			return err
		}
	}
	return toolchain.Keep(filepath.Join(work, "program"), path)
}

// runtimeBuild is locked while the runtime is compiled: the first kernels of a process would compile it several times.
var runtimeBuild sync.Mutex

// buildRuntime compiles the runtime, once per compiler.
func buildRuntime(ctx context.Context, t *toolchain.Toolchain, work, kernel, path string) error {
	runtimeBuild.Lock()
	defer runtimeBuild.Unlock()
	if toolchain.Kept(path) {
		return nil
	}
	args := append(append([]string{}, runtimeFlags...), "-I.", "-c", "-o", "worker.o", "worker.cpp")
	if err := t.Run(ctx, work, kernel, args...); err != nil {
		return err
	}
	return toolchain.Keep(filepath.Join(work, "worker.o"), path)
}

func writeWorker(dir string) error {
	return fs.WalkDir(worker, "worker", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := worker.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(dir, d.Name()), content, 0o600)
	})
}

var workerHash = sync.OnceValue(func() string {
	h := sha256.New()
	_ = fs.WalkDir(worker, "worker", func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			content, _ := worker.ReadFile(path)
			fmt.Fprintf(h, "%s %d\n%s", path, len(content), content)
		}
		return err
	})
	return hex.EncodeToString(h.Sum(nil))
})
