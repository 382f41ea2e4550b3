package toolchain

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"

	"github.com/mlxgrad/mlxgrad/customkernels/internal/confine"
	"github.com/mlxgrad/mlxgrad/customkernels/internal/metalstd"
)

// A Toolchain is a C++ compiler with its flags and its cache key.
type Toolchain struct{ c *compiler }

// FindToolchain returns the compiler that Cache.Compile uses, or ErrNoCompiler.
func FindToolchain() (*Toolchain, error) {
	c, err := findCompiler()
	if err != nil {
		return nil, err
	}
	return &Toolchain{c}, nil
}

// NewToolchain returns the compiler that a command such as "g++" starts. The error says why it does not run.
func NewToolchain(command ...string) (*Toolchain, error) {
	c, err := newCompiler(command)
	if err != nil {
		return nil, err
	}
	return &Toolchain{c}, nil
}

// String returns the path and version of the compiler.
func (t *Toolchain) String() string { return t.c.String() }

// Clang reports whether the compiler accepts clang's options.
func (t *Toolchain) Clang() bool { return t.c.clang() }

// ClangVersion returns the major version of clang, or 0 for another compiler.
func (t *Toolchain) ClangVersion() int { return clangVersion(t.c.version) }

// Flags returns the flags that affect the results of a kernel: all flags except optimization, the protection of the
// stack and the kind of output.
func (t *Toolchain) Flags() []string {
	return slices.DeleteFunc(t.c.flags(), func(f string) bool {
		return strings.HasPrefix(f, "-O") || f == preferWideVectors || f == protectStack || f == "-fPIC" || f == "-shared"
	})
}

// Key returns the part of a cache key that identifies the compiler, the headers and the processor.
func (t *Toolchain) Key() string {
	return fmt.Sprintf("%q\n%s\n%s\n%s",
		t.c.command, t.c.version, hex.EncodeToString(metalstd.HostHash[:]), processorName())
}

// Run runs the compiler in dir, a work folder of the cache, for a kernel. If the compiler rejects the kernel, the error
// is a *CompileError. A compiler that runs for ten minutes is killed.
func (t *Toolchain) Run(ctx context.Context, dir, kernel string, args ...string) error {
	var output confine.Output
	return t.output(t.c.run(ctx, compilerLimit, dir, &output, &output, args...), kernel, &output)
}

// Preprocess runs the compiler in dir with the arguments of a preprocessor, and writes its output to stdout. If the
// compiler rejects the text, the error is a *CompileError.
func (t *Toolchain) Preprocess(ctx context.Context, dir, file string, stdout io.Writer, args ...string) error {
	var messages confine.Output
	return t.output(t.c.run(ctx, compilerLimit, dir, stdout, &messages, args...), file, &messages)
}

// output returns the error of a compiler's run that wrote messages.
func (t *Toolchain) output(err error, kernel string, output *confine.Output) error {
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return &CompileError{Kernel: kernel, Compiler: t.String(), Output: output.String()}
	}
	if err != nil {
		return fmt.Errorf("compiling kernel %s: %w", kernel, err)
	}
	return nil
}

// KernelName returns the kernel's name in a translation unit.
func KernelName(source string) string { return kernelName(source) }
