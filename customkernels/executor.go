package customkernels

import (
	"errors"
	"os"
	"sync/atomic"

	"github.com/mlxgrad/mlxgrad/customkernels/internal/toolchain"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// ExecutorName returns the executor of launches on the current stream: "host", "metal" or "cuda", or "none".
func ExecutorName() string {
	switch mlxc.CurrentBackend() {
	case mlxc.BackendCPU:
		return "host"
	case mlxc.BackendMetal:
		return "metal"
	case mlxc.BackendCUDA:
		return "cuda"
	}
	return "none"
}

// ErrNoCompiler is the error of launches on a CPU without a C++ compiler. Test for it with errors.Is.
var ErrNoCompiler = toolchain.ErrNoCompiler

// CheckExecutor returns nil if launches on the current stream can be executed. Otherwise the error names the missing
// compiler, library or headers, and a remedy.
func CheckExecutor() error {
	switch mlxc.CurrentBackend() {
	case mlxc.BackendCPU:
		return hostCompilerFound()
	case mlxc.BackendMetal:
		return nil
	case mlxc.BackendCUDA:
		_, _, err := cudaCompiler()
		return err
	}
	return errNoExecutor
}

// compilerFound holds the values of CXX and PATH with which the C++ compiler was last found.
var compilerFound atomic.Pointer[[2]string]

// hostCompilerFound is toolchain.Available, which reads folders, without a search for values of CXX and PATH with which
// it succeeded last. Operations call it at every launch.
func hostCompilerFound() error {
	values := [2]string{os.Getenv("CXX"), os.Getenv("PATH")}
	if last := compilerFound.Load(); last != nil && *last == values {
		return nil
	}
	err := toolchain.Available()
	if err == nil {
		compilerFound.Store(new(values))
	}
	return err
}

var errNoExecutor = errors.New("custom kernels run on Metal, CUDA and CPU devices only: use " +
	"mlxc.WithDevice(mlxc.CPU, …)")

// HostCompiler returns the path and version of the host executor's C++ compiler.
func HostCompiler() (string, error) {
	if err := toolchain.Available(); err != nil {
		return "", err
	}
	return toolchain.CompilerInfo(), nil
}

// CacheDir returns the folder of the kernels that the host and CUDA executors compile, and creates it if necessary. It
// is MLXGRAD_CACHE/host if MLXGRAD_CACHE is set, otherwise mlxgrad/host in the user's cache folder.
//
// If another user owns that folder or can write a folder above it, or if its disk is full, read-only or mounted noexec,
// CacheDir returns mlxgrad-host-UID in the system's temporary folder and logs the reason. The choice holds for the life
// of the process. If the temporary folder is unusable too, CacheDir returns an error.
//
// With g++ the folder holds precompiled headers: 34 MB for kernels, and 45 MB for the checker. Deleting the folder is
// safe. A daily cleanup deletes the files that were last used more than 30 days before the previous cleanup.
func CacheDir() (string, error) { return toolchain.CacheDir() }
