package toolchain

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/mlxgrad/mlxgrad/customkernels/internal/limited"
	"github.com/mlxgrad/mlxgrad/internal/cxx"
	"github.com/mlxgrad/mlxgrad/internal/quickcompile"
)

// ErrNoCompiler is what Compile and Available return when there is no C++
// compiler; the message says how to get one.
var ErrNoCompiler = errors.New("host: no C++ compiler: install g++ 12 or newer or clang 14 or newer " +
	"(Debian and Ubuntu: apt-get install g++; macOS: xcode-select --install), or name one in CXX")

// A CompileError says that the compiler refused a kernel.
type CompileError struct {
	Kernel   string // the kernel's name
	Compiler string // path and version
	Output   string // all that the compiler printed
}

// firstErrors is how many of the compiler's errors a message shows.
const firstErrors = 3

var errorLine = regexp.MustCompile(`(?m)^.*\b(?:fatal error|error|undefined reference)\b.*$`)

// Error shows the first errors of the compiler, with file and line.
func (e *CompileError) Error() string {
	lines := errorLine.FindAllString(e.Output, -1)
	var b strings.Builder
	fmt.Fprintf(&b, "host: kernel %s does not compile with %s:", e.Kernel, e.Compiler)
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

// A compiler is one that was found, with what the cache must know of it.
type compiler struct {
	command []string // the words of CXX: "ccache", "g++"
	path    string   // of the first word, absolute
	version string   // first line of --version
}

func (c *compiler) String() string { return c.path + " (" + c.version + ")" }

// findCompiler looks for CXX, then for the usual names.
func findCompiler() (*compiler, error) {
	command, err := cxx.Command()
	if err != nil {
		return nil, fmt.Errorf("%w (%w)", ErrNoCompiler, err)
	}
	if len(command) > 0 {
		c, err := newCompiler(command)
		if err != nil {
			return nil, fmt.Errorf("%w (CXX=%s does not run: %w; within CXX, a path with spaces stands in quotes)", ErrNoCompiler, os.Getenv("CXX"), err)
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
	// It runs in another folder.
	if path, err = filepath.Abs(path); err != nil {
		return nil, err
	}
	version, err := compilerVersion(path, command[1:])
	if err != nil {
		return nil, err
	}
	return &compiler{command: command, path: path, version: version}, nil
}

// flags are those of every compilation. The three after -shared keep both
// compilers from what Metal allows and C++ does not: reading one type as
// another, loops that wait, signed overflow. Contraction is off so that both
// give the same bits, and a literal without a suffix is a float, as in MSL.
func (c *compiler) flags() []string {
	optimization := "-O3"
	if quickcompile.Enabled() {
		optimization = "-O1"
	}
	f := []string{
		"-std=c++20", optimization, "-fPIC", "-shared",
		"-fno-strict-aliasing", "-fno-finite-loops", "-fwrapv", "-ffp-contract=off",
		"-fno-math-errno", "-fno-trapping-math",
		"-fno-exceptions", "-fno-rtti", "-fvisibility=hidden", "-fno-stack-protector",
		"-w", "-pipe",
	}
	if c.clang() {
		f = append(f, "-Xclang", "-cl-single-precision-constant")
	} else {
		f = append(f, "-fsingle-precision-constant")
		// g++ unrolls a loop of 16 turns before it looks at vectors, and then finds none in
		// the conversions of half.
		f = append(f, "--param=max-completely-peel-times=8")
	}
	if runtime.GOARCH == "arm64" {
		f = append(f, "-mcpu=native")
	} else {
		f = append(f, "-march=native", "-fcf-protection=none")
	}
	if runtime.GOARCH == "amd64" && runtime.GOOS == "linux" {
		// MLX's CPU allocator aligns to 8 bytes, Metal's to far more: a wide vector at the
		// beginning of a buffer is aligned on a GPU and must not fault here.
		f = append(f, "-Wa,-muse-unaligned-vector-move")
		if c.clang() {
			f = append(f, "-fno-integrated-as")
		}
	}
	return f
}

// clang reports whether the compiler takes clang's own options.
func (c *compiler) clang() bool { return strings.Contains(c.version, "clang") }

// libraries come after the source on the command line.
func libraries() []string {
	if runtime.GOOS == "linux" {
		return []string{"-Wl,--as-needed", "-Wl,-z,defs", "-lm"}
	}
	return nil
}

// compile makes the shader library out of source, both in dir, which holds the
// headers. Messages of the compiler then name no directory.
func (c *compiler) compile(ctx context.Context, dir, kernel, source, out string) error {
	args := append([]string{"-o", out, source}, libraries()...)
	return (&Toolchain{c}).RunOnHeaders(ctx, dir, kernel, "", c.flags(), args...)
}

// askVersion asks the compiler what it is.
func askVersion(path string, args []string) (string, error) {
	var out bytes.Buffer
	c := &compiler{command: append([]string{path}, args...), path: path}
	if err := c.run(context.Background(), versionLimit, "", &out, nil, "--version"); err != nil {
		return "", fmt.Errorf("%s --version: %w", filepath.Base(path), err)
	}
	line, _, _ := strings.Cut(out.String(), "\n")
	return strings.TrimSpace(line), nil
}

// Limits of one run of the compiler. The version takes milliseconds, so only a compiler that hangs
// meets its limit.
var (
	compilerLimit = limited.Time
	versionLimit  = time.Minute
)

// errHangs is the error of a compiler that met its limit.
var errHangs = errors.New("did not end")

// run calls the compiler in dir. It stops the compiler, with all processes that it started, when ctx
// ends or the limit is reached.
func (c *compiler) run(ctx context.Context, limit time.Duration, dir string, stdout, stderr io.Writer, args ...string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("%s %w within %v and was stopped", c.path, errHangs, limit))
	defer cancel()
	cmd := limited.Command(ctx, c.path, slices.Concat(c.command[1:], args)...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, stdout, stderr
	if dir != "" {
		cmd.Env = append(cmd.Env, "TMPDIR="+dir) // nothing outside it is left of a compiler that was stopped
	}
	err := cmd.Run()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}
