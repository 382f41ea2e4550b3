package sanitizer

import (
	"io/fs"

	"github.com/mlxgrad/mlxgrad/customkernels/internal/shader"
	"github.com/mlxgrad/mlxgrad/customkernels/internal/toolchain"
)

// ErrNoCompiler is the error, under errors.Is, of a machine without a C++ compiler.
var ErrNoCompiler = toolchain.ErrNoCompiler

// Compiler returns the path and version of the C++ compiler that compiles the kernels.
func Compiler() (string, error) {
	t, err := toolchain.FindToolchain()
	if err != nil {
		return "", err
	}
	return t.String(), nil
}

// Library is a Metal shader file with the text that it includes.
type Library struct{ file *shader.File }

// Load reads and parses a Metal shader file of a file system, and the files that it includes. The
// error names file, line and column, and says what to do.
func Load(fsys fs.FS, name string) (*Library, error) {
	file, err := shader.Load(fsys, name)
	if err != nil {
		return nil, err
	}
	return &Library{file}, nil
}

// Names lists the kernels in the order of the file.
func (l *Library) Names() []string { return l.file.Names() }

// Kernel prepares a function of the file with the options of a launch description. The empty name stands for the
// only function.
func (l *Library) Kernel(name string, options ...Option) (*Kernel, error) {
	k, err := l.file.Kernel(name, options...)
	if err != nil {
		return nil, err
	}
	return New(k), nil
}

// Option gives Library.Kernel a value that the function's text leaves open: see package launchspec.
type Option = shader.Option

// MLXVersion is the version of MLX whose generated texts are checked.
const MLXVersion = "0.32.2"
