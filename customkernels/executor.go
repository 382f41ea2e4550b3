package customkernels

import (
	"errors"
	"os"
	"sync/atomic"

	"github.com/mlxgrad/mlxgrad/customkernels/internal/toolchain"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// ExecutorName tells what would execute a launch on the current stream: "host",
// "metal" or "cuda", or "none" if nothing can.
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

// ErrNoCompiler is the error, under errors.Is, of a launch on a CPU on a machine
// without a C++ compiler.
var ErrNoCompiler = toolchain.ErrNoCompiler

// Available returns nil if launches on the current stream can be executed, or
// what is missing and how to get it.
func Available() error {
	switch mlxc.CurrentBackend() {
	case mlxc.BackendCPU:
		return remembered(&compilerFound, [2]string{"CXX", "PATH"}, toolchain.Available)
	case mlxc.BackendMetal:
		return nil
	case mlxc.BackendCUDA:
		return remembered(&toolkitFound, [2]string{"CUDA_HOME", "CUDA_PATH"}, toolchain.CUDAAvailable)
	}
	return errNoExecutor
}

// compilerFound and toolkitFound hold the environment in which each was found last: looking
// for one reads folders, and operations ask at every call.
var compilerFound, toolkitFound atomic.Pointer[[2]string]

// remembered is what available says, or nil if it said so before in this environment.
func remembered(found *atomic.Pointer[[2]string], variables [2]string, available func() error) error {
	where := [2]string{os.Getenv(variables[0]), os.Getenv(variables[1])}
	if last := found.Load(); last != nil && *last == where {
		return nil
	}
	err := available()
	if err == nil {
		found.Store(new(where))
	}
	return err
}

var errNoExecutor = errors.New("custom kernels run on Metal, CUDA and CPU devices only: use mlxc.WithDevice(mlxc.CPU, …)")

// HostCompiler returns the path and version of the C++ compiler that the host
// executor uses.
func HostCompiler() (string, error) {
	if err := toolchain.Available(); err != nil {
		return "", err
	}
	return toolchain.CompilerInfo(), nil
}

// CacheDir returns the folder in which the host executor keeps compiled kernels: the folder host in
// MLXGRAD_CACHE if that is set, else mlxgrad/host in the user's cache folder. If others can write
// that folder or one above it, or if its disk is full, read-only or mounted noexec, CacheDir returns
// mlxgrad-host-UID in the system's temporary folder instead and logs why; the choice holds for the
// life of the process. If that cannot be used either, CacheDir returns an error.
//
// With g++ the folder begins with precompiled headers of 34 MB, and of 45 MB for the checker.
// Deleting it is safe; files that were not used in 30 days of use are deleted.
func CacheDir() (string, error) { return toolchain.CacheDir() }
