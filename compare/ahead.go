package compare

import (
	"context"
	"runtime"
	"sync"

	"github.com/mlxgrad/mlxgrad/compare/internal/arrays"
	"github.com/mlxgrad/mlxgrad/internal/ahead"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// CompileKernels compiles the kernels of our gradients of ops in dtypes on all cores. It calls progress with the number
// of variants compiled so far, starting at 0, and the total number; the calls come from several goroutines, one at a
// time. progress may be nil. It stops early if ctx ends. It ignores compiler errors; [Run] reports them with their
// cases. On Metal it does nothing, because MLX compiles kernels at their first launch. No other goroutine may launch
// kernels at the same time.
func CompileKernels(ctx context.Context, ops []Op, dtypes []mlxc.DType, progress func(compiled, all int)) {
	if mlxc.CurrentBackend() == mlxc.BackendMetal {
		return
	}
	if progress == nil {
		progress = func(compiled, all int) {}
	}
	programs := programsOf(ops, dtypes)
	progress(0, len(programs))
	todo := make(chan ahead.Program)
	var workers sync.WaitGroup
	var mu sync.Mutex
	compiled := 0
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for p := range todo {
				_ = p.Compile(ctx)
				mu.Lock()
				compiled++
				progress(compiled, len(programs))
				mu.Unlock()
			}
		})
	}
	for _, p := range programs {
		if ctx.Err() != nil {
			break
		}
		todo <- p
	}
	close(todo)
	workers.Wait()
}

// programsOf returns the programs of ops in dtypes, each variant once.
func programsOf(ops []Op, dtypes []mlxc.DType) []ahead.Program {
	var list []ahead.Program
	known := set{}
	for _, op := range ops {
		for _, c := range op.Cases {
			for _, dtype := range dtypes {
				if !c.runsIn(dtype) {
					continue
				}
				for _, p := range c.programs(op.Name, dtype) {
					if known.add([]string{p.Kernel + p.Signature}) {
						list = append(list, p)
					}
				}
			}
		}
	}
	return list
}

// programs returns the programs that our gradient of the case launches in a dtype. The list is incomplete if our
// function fails; [Run] reports that.
func (c Case) programs(op string, dtype mlxc.DType) (programs []ahead.Program) {
	if c.check() != nil {
		return nil
	}
	rng := RNG(op, c.Name)
	mlxc.WithScope(func() {
		var in, cotangents []*mlxc.Array
		for _, x := range c.Inputs {
			in = append(in, x.standIn(rng, dtype))
		}
		for _, out := range c.Outputs {
			cotangents = append(cotangents, mlxc.Zeros(out.StoredDType(dtype), out.Shape...))
		}
		programs = ahead.Collect(func() { _, _, _ = arrays.VJP(c.Ours, in, c.Differentiated(), cotangents) })
	})
	return programs
}
