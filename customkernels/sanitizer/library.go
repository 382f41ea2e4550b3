package sanitizer

import (
	"context"
	"io/fs"

	"github.com/mlxgrad/mlxgrad/customkernels/internal/confine"
	"github.com/mlxgrad/mlxgrad/customkernels/internal/preprocess"
	"github.com/mlxgrad/mlxgrad/customkernels/internal/shader"
	"github.com/mlxgrad/mlxgrad/customkernels/internal/toolchain"
)

// ErrNoCompiler is the error if no C++ compiler is found. Test for it with errors.Is.
var ErrNoCompiler = toolchain.ErrNoCompiler

// Compiler returns the path and version of the C++ compiler that compiles kernels.
func Compiler() (string, error) {
	t, err := toolchain.FindToolchain()
	if err != nil {
		return "", err
	}
	return t.String(), nil
}

// Containment returns the restrictions of compilers and checked kernels on this machine, such as Landlock, seccomp and
// limits, and the gaps. gaps is empty if all restrictions are in force. Both are texts for people and may change.
func Containment() (inForce, gaps string) { return confine.Containment() }

// A Library is a Metal shader file and the files that it includes.
type Library struct{ file *shader.File }

// Load reads and parses a Metal shader file of a file system and the files that it includes. The error names file, line
// and column, and a remedy.
func Load(fsys fs.FS, name string) (*Library, error) {
	file, err := shader.Load(fsys, name)
	if err != nil {
		return nil, err
	}
	return &Library{file}, nil
}

// NativeOptions are the options of LoadNative, like those of a compiler's command line. Include has the folders of the
// file system for #include, in the order of the search. Define has macros, NAME or NAME=VALUE.
type NativeOptions = preprocess.Options

// LoadNative reads a Metal shader file to check its kernels as Metal runs them, without MLX. The host's C++ compiler
// preprocesses the file, so macros may make kernels and select includes. Kernels may have any template parameters.
// Names of [[host_name("…")]] stand for explicit instantiations. A kernel that cannot run is an error of
// Library.Kernel only, and a file without a kernel is no error.
func LoadNative(ctx context.Context, fsys fs.FS, name string, o NativeOptions) (*Library, error) {
	file, err := shader.LoadNative(ctx, fsys, name, o)
	if err != nil {
		return nil, err
	}
	return &Library{file}, nil
}

// Problem returns the reason why a kernel cannot run, or nil. Only kernels of LoadNative have one.
func (l *Library) Problem(name string) error { return l.file.Problem(name) }

// Drafts returns a launch description for each kernel of LoadNative that can run, as package launchspec reads them: one
// thread, zeros, and large buffers. A template has one for its first instantiation.
func (l *Library) Drafts() []string { return l.file.Drafts() }

// Names returns the names of the kernels in the order of the file.
func (l *Library) Names() []string { return l.file.Names() }

// Kernel returns a function of the file. The empty name selects the only function. Spec.Options of package launchspec
// returns the options of a launch description.
//
// The error is for an unknown name, an option that does not fit the function, or a threadgroup argument or function
// constant without a value.
func (l *Library) Kernel(name string, options ...Option) (*Kernel, error) {
	k, err := l.file.Kernel(name, options...)
	if err != nil {
		return nil, err
	}
	return New(k), nil
}

// An Option sets a value that the function's source leaves open: see package launchspec.
type Option = shader.Option

// MLXVersion is the version of MLX whose source this package reproduces. MLX 0.32.2 generates the same source.
const MLXVersion = "0.32.4"
