package toolchain

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/mlxgrad/mlxgrad/customkernels/internal/confine"
	"github.com/mlxgrad/mlxgrad/customkernels/internal/metalstd"
	"github.com/mlxgrad/mlxgrad/internal/cxx"
	"github.com/mlxgrad/mlxgrad/internal/quickcompile"
)

// ErrNoCompiler is the error if no C++ compiler is found. Its message says how to install one.
var ErrNoCompiler = errors.New("no C++ compiler: install g++ 12 or newer or clang 14 or newer " +
	"(Debian and Ubuntu: apt-get install g++; macOS: xcode-select --install), or name one in CXX")

// A CompileError is the error of a kernel that the compiler rejected.
type CompileError struct {
	Kernel   string // the kernel's name
	Compiler string // path and version
	Output   string // the compiler's output
}

// firstErrors is the number of compiler errors in a message.
const firstErrors = 3

var errorLine = regexp.MustCompile(`(?m)^.*\b(?:fatal error|error|undefined reference)\b.*$`)

// Error returns the first errors of the compiler, with file and line.
func (e *CompileError) Error() string {
	lines := errorLine.FindAllString(e.Output, -1)
	var b strings.Builder
	fmt.Fprintf(&b, "kernel %s does not compile with %s:", e.Kernel, e.Compiler)
	if len(lines) == 0 {
		fmt.Fprintf(&b, "\n\t%s", strings.TrimSpace(e.Output))
	}
	for i, line := range lines {
		if i == firstErrors {
			fmt.Fprintf(&b, "\n\t(%d more)", len(lines)-i)
			break
		}
		fmt.Fprintf(&b, "\n\t%s", strings.TrimSpace(line))
	}
	return b.String()
}

// A compiler is a C++ compiler and the properties that the cache key covers.
type compiler struct {
	command []string // the words of CXX: "ccache", "g++"
	path    string   // of the first word, absolute
	version string   // first line of --version
}

func (c *compiler) String() string { return c.path + " (" + c.version + ")" }

// findCompiler returns the compiler that CXX names, or else the first of g++, clang++ and c++ that runs.
func findCompiler() (*compiler, error) {
	command, err := cxx.Command()
	if err != nil {
		return nil, fmt.Errorf("%w (%w)", ErrNoCompiler, err)
	}
	if len(command) > 0 {
		c, err := newCompiler(command)
		if err != nil {
			return nil, fmt.Errorf("%w (CXX=%s does not run: %w; within CXX, quote a path that contains spaces)",
				ErrNoCompiler, os.Getenv("CXX"), err)
		}
		return c, nil
	}
	err = ErrNoCompiler
	for _, name := range []string{"g++", "clang++", "c++"} {
		c, failed := newCompiler([]string{name})
		if failed == nil {
			return c, nil
		}
		if !errors.Is(failed, exec.ErrNotFound) {
			err = fmt.Errorf("%w (%w)", err, failed)
		}
	}
	return nil, err
}

func newCompiler(command []string) (*compiler, error) {
	path, err := exec.LookPath(command[0])
	if err != nil {
		return nil, err
	}
	// The compiler runs in another folder.
	if path, err = filepath.Abs(path); err != nil {
		return nil, err
	}
	version, err := compilerVersion(path, command[1:])
	if err != nil {
		return nil, err
	}
	return &compiler{command: command, path: path, version: version}, nil
}

// preferWideVectors selects vectors of 512 bits. g++ prefers 256 bits, with which kernels take up to 1.6 times as long.
const preferWideVectors = "-mprefer-vector-width=512"

// protectStack makes a stack that overflows meet its guard page, which a large frame would otherwise skip.
const protectStack = "-fstack-clash-protection"

// flags returns the flags of every compilation. -fno-strict-aliasing, -fno-finite-loops and -fwrapv define behavior
// that Metal defines and C++ does not: access to a value as another type, infinite loops, and signed overflow.
// Contraction is off so that g++ and clang give the same bits. A literal without a suffix is a float, as in MSL.
func (c *compiler) flags() []string {
	optimization := "-O3"
	if quickcompile.Enabled() {
		optimization = "-Og"
	}
	f := []string{
		"-std=c++20", optimization, "-fPIC", "-shared",
		"-fno-strict-aliasing", "-fno-finite-loops", "-fwrapv", "-ffp-contract=off",
		"-fno-math-errno", "-fno-trapping-math",
		"-fno-exceptions", "-fno-rtti", "-fvisibility=hidden", "-fno-stack-protector", protectStack,
		"-w", "-pipe",
	}
	if c.clang() {
		f = append(f, "-Xclang", "-cl-single-precision-constant")
	} else {
		f = append(f, "-fsingle-precision-constant")
		// g++ unrolls loops of 16 iterations before it vectorizes, and then fails to vectorize conversions of half.
		f = append(f, "--param=max-completely-peel-times=8")
		if runtime.GOARCH == "arm64" {
			f = append(f, "--param=stack-clash-protection-guard-size=12") // a guard of 4 KiB instead of 64
		}
	}
	if runtime.GOARCH == "arm64" {
		f = append(f, "-mcpu=native")
	} else {
		f = append(f, "-march=native", "-fcf-protection=none")
	}
	if hasAVX512(processorName()) {
		f = append(f, preferWideVectors)
	}
	if runtime.GOARCH == "amd64" && runtime.GOOS == "linux" {
		// An input may be a view that begins anywhere, or memory of the caller. So a vector may not be aligned. With
		// this flag, the assembler uses only vector moves that do not fault then.
		f = append(f, "-Wa,-muse-unaligned-vector-move")
		if c.clang() {
			f = append(f, "-fno-integrated-as")
		}
	}
	return f
}

// clang reports whether the compiler accepts clang's options.
func (c *compiler) clang() bool { return strings.Contains(c.version, "clang") }

var clangNumber = regexp.MustCompile(`clang version (\d+)`)

// clangVersion returns the major version in clang's version line, or 0 if there is none.
func clangVersion(line string) int {
	m := clangNumber.FindStringSubmatch(line)
	if m == nil {
		return 0
	}
	n, _ := strconv.Atoi(m[1])
	return n
}

// libraries returns the linker flags, which follow the source on the command line.
func libraries() []string {
	if runtime.GOOS == "linux" {
		return []string{"-Wl,--as-needed", "-Wl,-z,defs", "-lm"}
	}
	return nil
}

// compile compiles source to the shader library out. Both are names of files in dir, which also holds the headers. So
// the compiler's messages contain no folder.
func (c *compiler) compile(ctx context.Context, dir, kernel, source, out string, flags []string) error {
	args := append([]string{"-o", out, "-fstack-usage", source}, libraries()...)
	return (&Toolchain{c}).RunOnHeaders(ctx, dir, kernel, metalstd.HostHeader, "", flags, args...)
}

// queryVersion returns the first line of the compiler's version.
func queryVersion(path string, args []string) (string, error) {
	var out confine.Output
	c := &compiler{command: append([]string{path}, args...), path: path}
	if err := c.run(context.Background(), versionLimit, "", &out, nil, "--version"); err != nil {
		return "", fmt.Errorf("%s --version: %w", filepath.Base(path), err)
	}
	line, _, _ := strings.Cut(out.String(), "\n")
	return strings.TrimSpace(line), nil
}

// Limits of one run of the compiler. Printing the version takes milliseconds, so only a compiler that hangs reaches its
// limit.
var (
	compilerLimit = confine.Time
	versionLimit  = time.Minute
)

// writable holds folders that every compiler writes, for tests.
var writable []string

// errHangs is the error of a compiler that reached its time limit.
var errHangs = errors.New("did not end")

// run runs the compiler in dir. When ctx ends or the limit is reached, it kills the compiler and all processes that it
// started.
func (c *compiler) run(ctx context.Context, limit time.Duration, dir string, stdout, stderr io.Writer,
	args ...string,
) error {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("%s %w within %v and was stopped",
		c.path, errHangs, limit))
	defer cancel()
	cmd := confine.Compiler(append([]string{c.path}, c.command[1:]...), args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, stdout, stderr
	cmd.Write = writable
	if dir != "" {
		cmd.Env = append(cmd.Env, "TMPDIR="+dir) // a compiler that is killed leaves no files elsewhere
		cached, _ := folders()                   // which hold precompiled headers
		cmd.Read, cmd.Write = append(cmd.Read, cached...), append(cmd.Write, dir)
	}
	err := cmd.Run(ctx)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}
