package host

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
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
	command []string // CXX may hold arguments: "ccache g++"
	path    string   // of the first word
	version string   // first line of --version
}

func (c *compiler) String() string { return c.path + " (" + c.version + ")" }

// findCompiler looks for CXX, then for the usual names.
func findCompiler() (*compiler, error) {
	var candidates [][]string
	if fields := strings.Fields(os.Getenv("CXX")); len(fields) > 0 {
		candidates = append(candidates, fields)
	} else {
		for _, name := range []string{"g++", "clang++", "c++"} {
			candidates = append(candidates, []string{name})
		}
	}
	for _, command := range candidates {
		path, err := exec.LookPath(command[0])
		if err != nil {
			continue
		}
		version, err := compilerVersion(path, command[1:])
		if err != nil {
			continue
		}
		return &compiler{command: command, path: path, version: version}, nil
	}
	if cxx := os.Getenv("CXX"); cxx != "" {
		return nil, fmt.Errorf("%w (CXX=%s does not run)", ErrNoCompiler, cxx)
	}
	return nil, ErrNoCompiler
}

// flags are those of every compilation. The three after -shared keep both
// compilers from what Metal allows and C++ does not: reading one type as
// another, loops that wait, signed overflow. Contraction is off so that both
// give the same bits, and a literal without a suffix is a float, as in MSL.
func (c *compiler) flags() []string {
	f := []string{
		"-std=c++20", "-O3", "-fPIC", "-shared",
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
	cmd := exec.Command(path, append(args[:len(args):len(args)], "--version")...)
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s --version: %w", filepath.Base(path), err)
	}
	line, _, _ := strings.Cut(string(out), "\n")
	return strings.TrimSpace(line), nil
}
