package ops

import (
	"io/fs"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/customkernels"
	"github.com/mlxgrad/mlxgrad/internal/long"
	"github.com/mlxgrad/mlxgrad/internal/quickcompile"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// Every kernel computes the same bits at the low optimization level of the tests and at the level that users get. Each
// kernel runs in one of its cases and dtypes, in the CPU's geometry if it has one. A sample has one in nine kernels.
func TestOptimizationKeepsBits(t *testing.T) {
	quick := quickcompile.Enabled()
	t.Cleanup(func() { quickcompile.Set(quick) })
	compiled := func(kernel string, quickly bool) *customkernels.Kernel {
		quickcompile.Set(quickly)
		files, err := fs.Glob(customkernels.Shaders(), "*.metal")
		require.NoError(t, err)
		for _, file := range files {
			// A new library, because kernels keep compiled programs.
			lib, err := customkernels.Load(customkernels.Shaders(), file)
			require.NoError(t, err)
			if k, err := lib.Kernel(kernel); err == nil {
				return k
			}
		}
		require.Fail(t, "no shader file has the kernel", kernel)
		return nil
	}
	launches := map[string][]KernelLaunch{} // by kernel
	for _, d := range backends {
		had := maps.Clone(launches)
		for _, l := range KernelLaunches(RaggedCases) {
			if name := l.Kernel.Name(); l.Backend == d && had[name] == nil {
				launches[name] = append(launches[name], l)
			}
		}
	}
	for i, name := range slices.Sorted(maps.Keys(launches)) {
		if !long.Full() && i%9 != 0 {
			continue
		}
		l := launches[name][i%len(launches[name])]
		t.Run(l.Name(), func(t *testing.T) {
			inputs := l.Inputs()
			l.Launch.InitValue = new(float32) // some kernels leave elements of their scratch unwritten
			bits := func(quickly bool) (all [][]uint8) {
				for _, output := range compiled(name, quickly).Launch(l.Launch, inputs...) {
					bytes, err := mlxc.ToSlice[uint8](output.Reshape(output.Size()).View(mlxc.Uint8))
					require.NoError(t, err)
					all = append(all, bytes)
				}
				return all
			}
			require.Equal(t, bits(false), bits(true))
		})
	}
}
