package ops

import (
	"fmt"

	"github.com/mlxgrad/mlxgrad/mlxc"
)

var _ = describe(descriptor{
	operations: []string{"transpose2d"},
	kernels: []kernelTest{
		{name: "transpose_2d", variants: func(l KernelLaunch) []KernelLaunch {
			// One threadgroup of two simdgroups iterates over all tiles of both matrices. The float32 tiles
			// have the width of float16 tiles.
			return transposeVariants(l, []string{"2 of 37x129", "1 of 130x70"}, func(v *KernelLaunch) {
				v.Launch.Grid = [3]int{64, 1, 1}
				v.setTemplate("TILE", 64)
			})
		}},
		{name: "transpose_2d_vectors", unused: notOn(mlxc.BackendCPU), variants: func(l KernelLaunch) []KernelLaunch {
			// Threadgroups of two simdgroups.
			return transposeVariants(l, []string{"1 of 96x128", "3 of 36x100"}, func(v *KernelLaunch) {
				v.Launch.Grid[0] = l.Launch.Grid[0] / l.Launch.Threadgroup[0] * 64
			})
		}},
		{name: "transpose_2d_direct"},
	},
	// Whole and short tiles, and matrices that are transposed without tiles.
	traffic: func() (cases []trafficCase) {
		shapes := [][3]int{{1, 512, 1024}, {8, 128, 64}, {2, 37, 129}, {1, 130, 70}, {3, 36, 100}, {2, 4096, 3}}
		for _, s := range shapes {
			cases = append(cases, trafficCase{
				name: fmt.Sprintf("Transpose2D, %d of %dx%d", s[0], s[1], s[2]),
				run: func(on target, dtype mlxc.DType) {
					transpose(on, mlxc.RandomNormal(mlxc.RandomKey(1), dtype, s[0], s[1], s[2]))
				},
				compulsory: 2 * s[0] * s[1] * s[2],
				limit:      1.00,
				vectors:    true,
			})
		}
		return cases
	},
	gradients: func() []gradientBench {
		return []gradientBench{{
			"Transpose2D",
			[][]int{{1024, 1024}, {1 << 18, 4}, {2048, 2048}, {1500, 2801}, {32, 512, 256}},
			onePrimal,
			unary(Transpose2D), unary(mlxTranspose),
		}}
	},
	builds: func() []buildBench {
		x, dy := normal(4, mlxc.Float32, 32, 64), normal(4, mlxc.Float32, 64, 32)
		return []buildBench{{"Transpose2D", unary(Transpose2D), arrays{x}, arrays{dy}}}
	},
})

func transposeVariants(l KernelLaunch, cases []string, change func(*KernelLaunch)) (list []KernelLaunch) {
	for _, c := range cases {
		if l.Case == c {
			list = append(list, l.variant(func(v *KernelLaunch) {
				change(v)
				v.Launch.Threadgroup = [3]int{64, 1, 1}
				v.setTemplate("GROUP_SIZE", 64)
			}))
		}
	}
	return list
}
