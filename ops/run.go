package ops

import (
	"log/slog"
	"math"
	"slices"
	"sync"

	"github.com/mlxgrad/mlxgrad/customkernels"
	"github.com/mlxgrad/mlxgrad/internal/ahead"
	"github.com/mlxgrad/mlxgrad/internal/checked"
	"github.com/mlxgrad/mlxgrad/internal/recipe"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// backends lists the backends that the kernels are tuned for.
var backends = []mlxc.Backend{mlxc.BackendCPU, mlxc.BackendMetal, mlxc.BackendCUDA}

// A target is the destination of an operation's launches. It is a parameter of the functions that launch kernels, so
// that tests and KernelLaunches can choose the geometry of another backend and record launches.
type target struct {
	backend    mlxc.Backend // selects the launch geometry
	warpgroups bool         // the backend is CUDA on a GPU with wgmma
	intercept  launchFunc   // if not nil, replaces Kernel.Launch
}

type launchFunc func(k *customkernels.Kernel, l customkernels.Launch, inputs []*mlxc.Array) []*mlxc.Array

// currentTarget returns the backend of the current stream as a target.
func currentTarget() target {
	on := target{backend: mlxc.CurrentBackend()}
	on.warpgroups = on.backend == mlxc.BackendCUDA && customkernels.HasWarpgroups()
	return on
}

func (t target) launch(k *customkernels.Kernel, l customkernels.Launch, inputs ...*mlxc.Array) []*mlxc.Array {
	if t.intercept != nil {
		return t.intercept(k, l, inputs)
	}
	return k.Launch(l, inputs...)
}

// A shaderFile is one of the shipped shader files. It is parsed at the first use of a kernel.
type shaderFile struct {
	load  func() (*customkernels.Library, error)
	mu    sync.Mutex
	cache map[string]*customkernels.Kernel
}

func newShaderFile(name string) *shaderFile {
	return &shaderFile{
		load: sync.OnceValues(func() (*customkernels.Library, error) {
			return customkernels.Load(customkernels.Shaders(), name)
		}),
		cache: map[string]*customkernels.Kernel{},
	}
}

// kernel returns a kernel of the file. It panics if the file has no such kernel, because the files are part of the
// program.
func (f *shaderFile) kernel(name string) *customkernels.Kernel {
	f.mu.Lock()
	defer f.mu.Unlock()
	if k := f.cache[name]; k != nil {
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
	f.cache[name] = k
	return k
}

var warnOnce sync.Once

// kernelsAvailable reports whether the current stream has an executor for kernels. If it has none, the first call in
// the process logs a warning.
func kernelsAvailable(op string) bool {
	err := customkernels.CheckExecutor()
	if err != nil {
		warnOnce.Do(func() {
			slog.Warn("mlxgrad: using MLX's own gradients", "operation", op, "reason", err)
		})
	}
	return err == nil
}

// recorded returns the results of withGradient or withHidden if graphs for the key and for arguments like args have been
// recorded for the current stream, and nil otherwise. These arguments need no checks: they have the shapes and dtypes of
// others that passed. An executor has run their launches.
func recorded(key any, args ...*mlxc.Array) []*mlxc.Array {
	if ahead.Current() != nil || checked.Enabled() {
		return nil
	}
	if slices.Contains(args, nil) {
		o := omittedOf(args)
		key, args = recipeKey{key, o}, o.remove(args)
	}
	return recipe.Use[*mlxc.Array]()(recipe.ID(key), args, 0, nil, nil)
}

// withGradient returns forward(args), differentiated by backward. A nil argument stands for an omitted operand: forward
// and backward receive nil in its place, and backward's result for it is ignored.
//
// key is a comparable value that tells, together with the shapes and dtypes of args and the current stream, which
// graphs forward and backward build. A later call with an equal key adds these graphs and does not run the functions. If
// key is nil, they run at every call.
func withGradient(key any, args []*mlxc.Array, forward mlxc.Func, backward mlxc.VJPFunc) []*mlxc.Array {
	return withHidden(math.MaxInt, key, args, forward, backward)
}

// withHidden is withGradient with the first `visible` results of forward. backward receives all results, and the
// cotangents of the visible ones. If forward fails, there may be only one result.
func withHidden(
	visible int, key any, args []*mlxc.Array, forward mlxc.Func, backward mlxc.VJPFunc,
) []*mlxc.Array {
	if slices.Contains(args, nil) {
		o := omittedOf(args)
		ofGiven := func(given []*mlxc.Array) []*mlxc.Array { return forward(o.insert(given)) }
		backwardOfGiven := func(primals, cotangents, outputs []*mlxc.Array) []*mlxc.Array {
			return o.remove(backward(o.insert(primals), cotangents, outputs))
		}
		if key != nil {
			key = recipeKey{key, o}
		}
		return withHidden(visible, key, o.remove(args), ofGiven, backwardOfGiven)
	}
	// A recording runs on arrays without values, and its launches could be neither listed nor checked.
	if key == nil || ahead.Current() != nil || checked.Enabled() {
		results := mlxc.CustomVJP(forward, func(primals, cotangents, outputs []*mlxc.Array) []*mlxc.Array {
			return backward(primals, cotangents[:min(visible, len(cotangents))], outputs)
		})(args)
		visible = min(visible, len(results))
		freeAll(results[visible:]) // handles would keep the memory alive longer than the graph
		return results[:visible]
	}
	return recipe.Use[*mlxc.Array]()(recipe.ID(key), args, visible, forward, backward)
}

// A recipeKey is the key of an operation with omitted operands.
type recipeKey struct {
	operation any
	omitted   omitted
}

// omitted tells which of an operation's n operands are nil, by a bit for each.
type omitted struct {
	n    int
	bits uint
}

func omittedOf(args []*mlxc.Array) omitted {
	o := omitted{n: len(args)}
	for i, a := range args {
		if a == nil {
			o.bits |= 1 << i
		}
	}
	return o
}

// remove returns the elements of all, one for each operand, without those of omitted operands.
func (o omitted) remove(all []*mlxc.Array) []*mlxc.Array {
	given := make([]*mlxc.Array, 0, o.n)
	for i, a := range all {
		if o.bits&(1<<i) == 0 {
			given = append(given, a)
		}
	}
	return given
}

// insert adds nil for omitted operands. It is the reverse of remove.
func (o omitted) insert(given []*mlxc.Array) []*mlxc.Array {
	all := make([]*mlxc.Array, o.n)
	for i := range all {
		if o.bits&(1<<i) == 0 {
			all[i], given = given[0], given[1:]
		}
	}
	return all
}
