package ops

import (
	"log/slog"
	"sync"

	"github.com/mlxgrad/mlxgrad/customkernels"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// device is a class of devices that wants the same launch geometry.
type device int

const (
	host device = iota
	apple
	cuda
)

// devices are all classes.
var devices = []device{host, apple, cuda}

func (d device) String() string {
	return [...]string{host: "host", apple: "apple", cuda: "cuda"}[d]
}

func currentDevice() device {
	switch mlxc.CurrentBackend() {
	case mlxc.BackendCPU:
		return host
	case mlxc.BackendCUDA:
		return cuda
	}
	return apple
}

// mostBeside is how many groups CUDA has along a grid's second and third axis.
const mostBeside = 65535

// elementsOf is the geometry for kernels whose threads never meet and take neighbouring
// elements: the threads of the grid and of a threadgroup.
func elementsOf(d device, elements int) (grid, threads int) {
	if d == host {
		return min(elements, 64), 1 // each of a few cores has several turns
	}
	return elements, 256
}

// A launcher is how an operation launches its kernels. It is an argument, so that
// Launches can ask for the geometry of another device and see every launch.
type launcher struct {
	device device
	// instead, if it is not nil, takes the place of Kernel.Launch.
	instead func(k *customkernels.Kernel, l customkernels.Launch, inputs []*mlxc.Array) []*mlxc.Array
}

// onCurrentDevice launches as the current stream's device likes it.
func onCurrentDevice() launcher { return launcher{device: currentDevice()} }

func (on launcher) launch(k *customkernels.Kernel, l customkernels.Launch, inputs ...*mlxc.Array) []*mlxc.Array {
	if on.instead != nil {
		return on.instead(k, l, inputs)
	}
	return k.Launch(l, inputs...)
}

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

// withGradient computes forward(args) and gives it the gradient backward. An argument
// may be nil, which stands for one that the caller left out: both functions then see
// nil in its place, and backward's result for it is not looked at.
func withGradient(args []*mlxc.Array, forward mlxc.Func, backward mlxc.VJPFunc) []*mlxc.Array {
	// What the functions below hold lives as long as the graph: so not args themselves.
	var given []*mlxc.Array
	is := make([]bool, len(args))
	for i, a := range args {
		if is[i] = a != nil; is[i] {
			given = append(given, a)
		}
	}
	spread := func(given []*mlxc.Array) []*mlxc.Array {
		all := make([]*mlxc.Array, len(is))
		for i, next := 0, 0; i < len(is); i++ {
			if is[i] {
				all[i] = given[next]
				next++
			}
		}
		return all
	}
	return mlxc.CustomVJP(
		func(given []*mlxc.Array) []*mlxc.Array { return forward(spread(given)) },
		func(primals, cotangents, outputs []*mlxc.Array) []*mlxc.Array {
			var grads []*mlxc.Array
			for i, g := range backward(spread(primals), cotangents, outputs) {
				if is[i] {
					grads = append(grads, g)
				}
			}
			return grads
		})(given)
}
