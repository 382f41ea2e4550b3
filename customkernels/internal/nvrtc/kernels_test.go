package nvrtc_test

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/customkernels/internal/nvrtc"
	"github.com/mlxgrad/mlxgrad/internal/ahead"
	"github.com/mlxgrad/mlxgrad/internal/long"
	"github.com/mlxgrad/mlxgrad/mlxc"
	"github.com/mlxgrad/mlxgrad/ops"
)

// NVRTC compiles every kernel of this project for each generation of GPUs. By default it compiles for Hopper, one launch
// of each kernel of WarpgroupCases and of every other kernel of RaggedCases.
func TestEveryKernelCompiles(t *testing.T) {
	compiler := nvrtc.CompilerForTest(t)
	capabilities := [][2]int{{9, 0}}
	if long.Full() {
		capabilities = [][2]int{{8, 0}, {9, 0}, {10, 0}}
	}
	var targets []nvrtc.Target
	for _, c := range capabilities {
		target, err := compiler.Target(c[0], c[1])
		require.NoError(t, err)
		targets = append(targets, target)
	}
	sets := []ops.CaseSet{ops.RaggedCases, ops.WarpgroupCases}
	if long.Full() {
		sets = append(sets, ops.TypicalCases)
	}
	type program struct{ name, kernel, text string }
	var programs []program
	kernels, texts := map[string]bool{}, map[string]bool{}
	for _, set := range sets {
		for _, l := range ops.KernelLaunches(set) {
			kernel := l.Kernel.Name()
			key := fmt.Sprint(set, kernel)
			if l.Backend != mlxc.BackendCUDA || kernels[key] && !long.Full() {
				continue
			}
			kernels[key] = true
			if set == ops.RaggedCases && len(kernels)%2 == 0 && !long.Full() {
				continue
			}
			var inputs []*mlxc.Array
			// Otherwise the host executor would compile the kernels of inputs.
			ahead.Collect(func() { inputs = l.Inputs() })
			text, err := l.Kernel.CUDASource(l.Launch, inputs...)
			require.NoError(t, err, l.Name())
			if !texts[text] {
				texts[text] = true
				programs = append(programs, program{l.Name(), kernel, text})
			}
		}
	}
	require.Greater(t, len(kernels), 20)
	todo := make(chan program)
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for p := range todo {
				for _, target := range targets {
					if _, err := compiler.Compile(context.Background(), target, p.kernel, p.text); err != nil {
						t.Errorf("%s: %v", p.name, err)
					}
				}
			}
		})
	}
	for _, p := range programs {
		todo <- p
	}
	close(todo)
	workers.Wait()
	t.Logf("%d programs of %d kernels for %v; %d were not in the cache", len(programs), len(kernels), targets, nvrtc.Compilations())
}
