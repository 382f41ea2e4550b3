package ops

import (
	"fmt"

	"github.com/mlxgrad/mlxgrad/mlxc"
)

var _ = describe(descriptor{
	operations: []string{"cross_entropy"},
	kernels: []kernelTest{
		{name: "cross_entropy_forward", variants: crossEntropyVariants},
		{name: "cross_entropy_fwd_bwd", variants: stagingVariants},
		{name: "cross_entropy_backward", variants: crossEntropyVariants},
		// TestLinearCrossEntropyInPlace tests these three.
		{name: "cross_entropy_backward_into", unused: onlyOn(mlxc.BackendCUDA), sameHelpers: true},
		{name: "cross_entropy_fwd_bwd_into", unused: onlyOn(mlxc.BackendCUDA), sameHelpers: true},
		{name: "cross_entropy_mean", unused: onlyOn(mlxc.BackendCUDA), sameHelpers: true},
		{name: "cross_entropy_merge"},
		{name: "cross_entropy_reduce", variants: reductionVariants},
	},
	traffic:   crossEntropyTraffic,
	gradients: crossEntropyBenches,
	builds: func() []buildBench {
		targets := mlxc.FromSlice([]int32{1, 2, 3, 4, 5, 6, 7, 8})
		x, w, one := normal(1, mlxc.Float32, 8, 64), normal(4, mlxc.Float32, 32, 64), mlxc.Scalar[float32](1)
		dlosses := normal(5, mlxc.Float32, 8)
		loss := func(r Reduction) mlxc.Func {
			return func(a arrays) arrays { return arrays{CrossEntropy(a[0], targets, CrossEntropyConfig{Reduction: r})} }
		}
		return []buildBench{
			{"CrossEntropy", loss(ReductionMean), arrays{x}, arrays{one}},
			{
				"CrossEntropy/mlx",
				func(a arrays) arrays { return arrays{mlxc.CrossEntropy(a[0], targets).Mean()} },
				arrays{x},
				arrays{one},
			},
			{"CrossEntropyRows", loss(ReductionNone), arrays{x}, arrays{dlosses}},
			{
				"CrossEntropyRows/mlx",
				func(a arrays) arrays { return arrays{mlxc.CrossEntropy(a[0], targets)} },
				arrays{x},
				arrays{dlosses},
			},
			{
				"LinearCrossEntropy",
				func(a arrays) arrays { return arrays{LinearCrossEntropy(a[0], a[1], targets, CrossEntropyConfig{})} },
				arrays{x, w},
				arrays{one},
			},
		}
	},
})

func crossEntropyVariants(l KernelLaunch) []KernelLaunch {
	return twoGroups(l, func(v *KernelLaunch, threads int) {
		if threads == 5 {
			v.setTemplate("INTERLEAVE", 1) // it must divide the number of threads
		}
	})
}

// reductionVariants returns variants with the largest threadgroup, and with a part of a simdgroup whose threads have
// several rows.
func reductionVariants(l KernelLaunch) []KernelLaunch {
	threads := map[string]int{"37x129": 1024, "6x128": 5}[l.Case]
	if threads == 0 {
		return nil
	}
	return []KernelLaunch{l.variant(func(v *KernelLaunch) {
		v.setGrid(1, threads)
		v.setTemplate("VEC", 1)
	})}
}

// stagingVariants also returns a variant in which a row has two blocks in threadgroup memory, one that is loaded twice and
// one in registers.
func stagingVariants(l KernelLaunch) []KernelLaunch {
	list := crossEntropyVariants(l)
	if l.Case == "6x128" {
		list = append(list, l.variant(func(v *KernelLaunch) {
			v.setGrid(2, 4)
			v.setTemplate("VECS_PER_THREAD", 8/templateOf(v.Launch)["VEC"])
			v.setTemplate("VECS_PER_STEP", 1)
			v.setTemplate("INTERLEAVE", 2)
			v.setTemplate("THREADS", 4)
			v.setTemplate("STAGED_BLOCKS", 2)
		}))
	}
	return list
}

// crossEntropyTraffic returns cases with rows that the registers of a threadgroup hold, and with longer rows. Registers
// hold the last 16,384 elements of a longer row, and the gradient reads the others again.
func crossEntropyTraffic() (cases []trafficCase) {
	for _, s := range [][2]int{{2048, 1000}, {4, 16384}, {4, 32768}} {
		rows, width := s[0], s[1]
		inputs := func(dtype mlxc.DType) (logits, targets *mlxc.Array) {
			return mlxc.RandomNormal(mlxc.RandomKey(1), dtype, rows, width), benchTargets(rows, width)
		}
		cases = append(cases, trafficCase{
			name: fmt.Sprintf("CrossEntropy with its gradient, %dx%d", rows, width),
			run: func(on target, dtype mlxc.DType) {
				logits, targets := inputs(dtype)
				crossEntropyForward(on, logits, targets, CrossEntropyConfig{}, true)
			},
			compulsory: 2 * rows * width,
			again:      rows * ((width - 1) / 16384 * 16384),
			limit:      1.05,
		}, trafficCase{
			name: fmt.Sprintf("CrossEntropy forward and backward, %dx%d", rows, width),
			run: func(on target, dtype mlxc.DType) {
				logits, targets := inputs(dtype)
				cfg := CrossEntropyConfig{Reduction: ReductionNone}
				outputs := crossEntropyForward(on, logits, targets, cfg, false)
				crossEntropyBackward(on, logits, targets, mlxc.Ones(mlxc.Float32, rows), outputs, cfg)
			},
			compulsory: 3 * rows * width,
			limit:      1.05,
		})
	}
	return cases
}

// benchTargets returns a target below classes for each row.
func benchTargets(rows, classes int) *mlxc.Array {
	return mlxc.Arange(mlxc.Int32, 0, float64(rows), 1).Remainder(mlxc.Scalar(int32(classes)))
}

func crossEntropyBenches() []gradientBench {
	logits := func(dtype mlxc.DType, s []int) (primals, others arrays) {
		return normals(dtype, s), arrays{benchTargets(s[0], s[1])}
	}
	loss := func(cfg CrossEntropyConfig, f lossFunc) mlxc.Func {
		return func(args arrays) arrays { return arrays{f(args[0], args[1], cfg)} }
	}
	all := CrossEntropyConfig{LabelSmoothing: 0.1, ZLoss: 1e-4}
	shapes := [][]int{{1024, 1000}, {32, 32000}, {4096, 1000}, {128, 32000}}
	return []gradientBench{
		{
			"CrossEntropy", shapes, logits, loss(CrossEntropyConfig{}, CrossEntropy),
			loss(CrossEntropyConfig{}, func(logits, targets *mlxc.Array, _ CrossEntropyConfig) *mlxc.Array {
				return mlxc.CrossEntropy(logits, targets).Mean()
			}),
		},
		{"CrossEntropy, smoothing and z-loss", shapes, logits, loss(all, CrossEntropy), loss(all, crossEntropyMLX)},
		{
			"LinearCrossEntropy",
			[][]int{{256, 64, 4096}, {512, 64, 8192}},
			func(dtype mlxc.DType, s []int) (primals, others arrays) {
				return normals(dtype, s[:2], []int{s[2], s[1]}), arrays{benchTargets(s[0], s[2])}
			},
			func(args arrays) arrays {
				return arrays{LinearCrossEntropy(args[0], args[1], args[2], CrossEntropyConfig{})}
			},
			func(args arrays) arrays {
				return arrays{linearLossMLX(CrossEntropyConfig{})(args[0], args[1], args[2])}
			},
		},
	}
}
