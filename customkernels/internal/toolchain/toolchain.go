package toolchain

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"

	"github.com/mlxgrad/mlxgrad/customkernels/internal/metalstd"
)

// A Toolchain is the C++ compiler with what an executor of another kind needs of
// this package: its flags, its headers and its cache.
type Toolchain struct{ c *compiler }

// FindToolchain finds the compiler that Compile uses. The error is ErrNoCompiler.
func FindToolchain() (*Toolchain, error) {
	c, err := findCompiler()
	if err != nil {
		return nil, err
	}
	return &Toolchain{c}, nil
}

// NewToolchain returns the compiler that a command starts, such as "g++". The error says why it does not run.
func NewToolchain(command ...string) (*Toolchain, error) {
	c, err := newCompiler(command)
	if err != nil {
		return nil, err
	}
	return &Toolchain{c}, nil
}

// String names the compiler: its path and version.
func (t *Toolchain) String() string { return t.c.String() }

// Clang reports whether the compiler takes clang's own options.
func (t *Toolchain) Clang() bool { return t.c.clang() }

// Flags returns the flags that decide what a kernel computes: those of fast mode
// without optimisation and without the kind of output.
func (t *Toolchain) Flags() []string {
	return slices.DeleteFunc(t.c.flags(), func(f string) bool {
		return strings.HasPrefix(f, "-O") || f == "-fPIC" || f == "-shared"
	})
}

// Key identifies the compiler, the headers and the processor for a cache.
func (t *Toolchain) Key() string {
	return fmt.Sprintf("%q\n%s\n%s\n%s", t.c.command, t.c.version, hex.EncodeToString(metalstd.HostHash[:]), processorName())
}

// Run calls the compiler in dir, a work folder of the cache, for a kernel. If it refuses the kernel, the error is
// a *CompileError. A compiler that does not end within ten minutes is stopped.
func (t *Toolchain) Run(ctx context.Context, dir, kernel string, args ...string) error {
	var output bytes.Buffer
	err := t.c.run(ctx, compilerLimit, dir, &output, &output, args...)
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return &CompileError{Kernel: kernel, Compiler: t.String(), Output: output.String()}
	}
	if err != nil {
		return fmt.Errorf("host: compiling kernel %s: %w", kernel, err)
	}
	return nil
}

// KernelName finds the kernel's name in a translation unit.
func KernelName(source string) string { return kernelName(source) }
