package ops

import (
	"log/slog"
	"sync"

	"github.com/mlxgrad/mlxgrad/customkernels"
)

// kernels is a shader file of this project, parsed at first use.
type kernels struct {
	load func() (*customkernels.Library, error)
	mu   sync.Mutex
	made map[string]*customkernels.Kernel
}

func family(file string) *kernels {
	return &kernels{
		load: sync.OnceValues(func() (*customkernels.Library, error) {
			return customkernels.Load(customkernels.Shaders(), file)
		}),
		made: map[string]*customkernels.Kernel{},
	}
}

// get returns a kernel of the file. The files are part of the program and tested,
// so a failure is a fault of the program: it panics.
func (f *kernels) get(name string) *customkernels.Kernel {
	f.mu.Lock()
	defer f.mu.Unlock()
	if k := f.made[name]; k != nil {
		return k
	}
	lib, err := f.load()
	if err != nil {
		panic(err)
	}
	k, err := lib.Kernel(name)
	if err != nil {
		panic(err)
	}
	f.made[name] = k
	return k
}

var warnOnce sync.Once

// kernelsAvailable reports whether the current stream has an executor for our
// kernels; if not it says so, once.
func kernelsAvailable(op string) bool {
	err := customkernels.Available()
	if err != nil {
		warnOnce.Do(func() {
			slog.Warn("mlxgrad: using MLX's own gradients", "first", op, "reason", err)
		})
	}
	return err == nil
}
