package compare

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/compare/oracle"
	"github.com/mlxgrad/mlxgrad/internal/long"
	"github.com/mlxgrad/mlxgrad/internal/testdevice"
	"github.com/mlxgrad/mlxgrad/mlxc"
	"github.com/mlxgrad/mlxgrad/ops"
)

// inFloat32 computes f in float32 and rounds the outputs to the dtype of the first input.
func inFloat32(f mlxc.Func) mlxc.Func {
	return func(in []*mlxc.Array) []*mlxc.Array {
		wide := make([]*mlxc.Array, len(in))
		for i, x := range in {
			wide[i] = x
			if x.DType().IsFloating() {
				wide[i] = x.AsType(mlxc.Float32)
			}
		}
		out := f(wide)
		for i := range out {
			out[i] = out[i].AsType(in[0].DType())
		}
		return out
	}
}

// add64 is the sum of rows and a vector.
func add64(in []oracle.Tensor) []oracle.Tensor {
	y := oracle.New(in[0].Shape...)
	for i, x := range in[0].Data {
		y.Data[i] = x + in[1].Data[i%len(in[1].Data)]
	}
	return []oracle.Tensor{y}
}

// perElement64 applies f to each element.
func perElement64(f func(float64) float64) oracle.Func {
	return func(in []oracle.Tensor) []oracle.Tensor {
		y := oracle.New(in[0].Shape...)
		for i, x := range in[0].Data {
			y.Data[i] = f(x)
		}
		return []oracle.Tensor{y}
	}
}

func unary(f func(x *mlxc.Array) *mlxc.Array) mlxc.Func {
	return func(in []*mlxc.Array) []*mlxc.Array { return []*mlxc.Array{f(in[0])} }
}

// Right functions pass for many seeds: kernels of ours, operations of MLX, with kinks, badly conditioned, with indices
// and masks, and with outputs of a fixed dtype.
func TestGradientsPassesRightFunctions(t *testing.T) {
	inputs := func(names ...string) (list []Input) {
		for _, name := range names {
			list = append(list, Input{Name: name, Dims: []string{"rows", "d"}})
		}
		return list
	}
	x := Case{Inputs: inputs("x")}
	// Softmax keeps its result in the dtype for the gradient, as MLX does.
	mlxSoftmax := unary(func(x *mlxc.Array) *mlxc.Array { return x.Softmax(-1) })
	softmaxCase := Case{Inputs: x.Inputs, MLX: mlxSoftmax}
	// The gradient of RMSNorm of a single element is almost 0.
	severalPerRow := rowsAndWeight()
	severalPerRow.Sizes = map[string][]int{"d": defaultSizes()[1:]}
	gelu := func(x *mlxc.Array) *mlxc.Array {
		return x.Mul(x.DivScalar(math.Sqrt2).Erf().AddScalar(1)).MulScalar(0.5)
	}
	layerNorm := func(x *mlxc.Array) *mlxc.Array {
		centered := x.Sub(x.MeanKeepDims(-1))
		return centered.Mul(centered.Square().MeanKeepDims(-1).AddScalar(1e-3).Rsqrt())
	}
	matMul := func(in []*mlxc.Array) []*mlxc.Array { return []*mlxc.Array{in[0].MatMul(in[1])} }
	masked := func(in []*mlxc.Array) []*mlxc.Array {
		return []*mlxc.Array{mlxc.Where(in[1], in[0].Exp(), in[0].MulScalar(2))}
	}
	wideLoss := func(in []*mlxc.Array) []*mlxc.Array {
		return []*mlxc.Array{in[0].AsType(mlxc.Float32).LogSumExp(-1).Mean()}
	}
	lookup := Case{Inputs: []Input{
		{Name: "table", Dims: []string{"vocabulary", "d"}},
		{Name: "ids", Dims: []string{"n"}, Kind: Index, Below: "vocabulary"},
	}}
	add := func(in []*mlxc.Array) []*mlxc.Array { return []*mlxc.Array{in[0].Add(in[1])} }
	smallEps := func(x *mlxc.Array) *mlxc.Array {
		centered := x.Sub(x.MeanKeepDims(-1))
		return centered.Mul(centered.Square().MeanKeepDims(-1).AddScalar(1e-5).Rsqrt())
	}
	pairs := Case{Inputs: x.Inputs, Sizes: map[string][]int{"rows": {1, 2, 3, 4, 7, 9}, "d": {2, 3}}}
	for name, test := range map[string]struct {
		ours      mlxc.Func
		reference Reference
		c         Case
		seeds     int // 1 if 0
	}{
		// The differences of x + b in rows of zeros have rounding errors, which the size of b decides.
		"sum": {ours: inFloat32(add), reference: Reference{Forward: add64}, c: rowsAndWeight(), seeds: 6},
		// The gradient of rows of two elements is badly conditioned.
		"normalization of pairs": {inFloat32(unary(smallEps)), Reference{Composed: unary(smallEps)}, pairs, 3},
		"square":                 {scaledSquare(nil), references()["gradient"], rowsAndWeight(), 0},
		"square by differences":  {scaledSquare(nil), references()["differences"], rowsAndWeight(), 0},
		"square by composition":  {scaledSquare(nil), references()["composition"], rowsAndWeight(), 0},
		"rmsnorm": {
			func(in []*mlxc.Array) []*mlxc.Array { return []*mlxc.Array{ops.RMSNorm(in[0], in[1], 1e-3)} },
			Reference{Forward: func(in []oracle.Tensor) []oracle.Tensor {
				return []oracle.Tensor{oracle.RMSNorm(in[0], &in[1], 1e-3)}
			}},
			severalPerRow, 0,
		},
		"softmax": {
			unary(ops.Softmax),
			Reference{
				Forward: func(in []oracle.Tensor) []oracle.Tensor { return []oracle.Tensor{oracle.Softmax(in[0])} },
				Gradient: func(in, ct []oracle.Tensor) []oracle.Tensor {
					return []oracle.Tensor{oracle.SoftmaxVJP(in[0], ct[0])}
				},
			},
			softmaxCase, 0,
		},
		"softmax by composition": {
			unary(ops.Softmax), Reference{Composed: mlxSoftmax}, softmaxCase, 0,
		},
		"relu": {
			unary(func(x *mlxc.Array) *mlxc.Array { return x.Maximum(mlxc.Zeros(x.DType())) }),
			Reference{Forward: perElement64(func(v float64) float64 { return max(v, 0) })},
			x, 0,
		},
		"log": {
			unary((*mlxc.Array).Log),
			Reference{Forward: perElement64(math.Log)},
			Case{
				Inputs: []Input{{Name: "x", Shape: []int{5, 7}, Values: Uniform(0.5, 20)}},
				DTypes: []mlxc.DType{mlxc.Float32},
			},
			0,
		},
		"gelu by differences": {
			inFloat32(unary(gelu)),
			Reference{Forward: perElement64(func(v float64) float64 { return v * (1 + math.Erf(v/math.Sqrt2)) / 2 })},
			x, 0,
		},
		"gelu by composition":          {inFloat32(unary(gelu)), Reference{Composed: unary(gelu)}, x, 0},
		"normalization by composition": {inFloat32(unary(layerNorm)), Reference{Composed: unary(layerNorm)}, x, 0},
		"composition in float32":       {inFloat32(unary(layerNorm)), Reference{Composed: inFloat32(unary(layerNorm))}, x, 0},
		"product": {
			inFloat32(matMul),
			Reference{Composed: matMul},
			Case{Inputs: []Input{{Name: "a", Dims: []string{"m", "k"}}, {Name: "b", Dims: []string{"k", "n"}}}, UsesTF32: true},
			0,
		},
		"mask": {
			inFloat32(masked),
			Reference{Composed: masked},
			Case{Inputs: append(inputs("x"), Input{Name: "mask", Dims: []string{"rows", "d"}, Kind: Mask})},
			0,
		},
		"loss": {
			wideLoss, Reference{Composed: wideLoss}, Case{Inputs: inputs("x"), Outputs: []Output{{Name: "loss", DType: mlxc.Float32}}}, 0,
		},
		"embedding": {
			func(in []*mlxc.Array) []*mlxc.Array { return []*mlxc.Array{ops.Embedding(in[0], in[1])} },
			Reference{
				Forward: func(in []oracle.Tensor) []oracle.Tensor { return []oracle.Tensor{oracle.Embedding(in[0], in[1])} },
				Gradient: func(in, ct []oracle.Tensor) []oracle.Tensor {
					return []oracle.Tensor{oracle.EmbeddingVJP(in[1], in[0].Shape[0], ct[0])}
				},
			},
			lookup, 0,
		},
	} {
		seeds := max(1, test.seeds)
		if long.Full() {
			seeds = 50
		}
		t.Run(name, func(t *testing.T) {
			for seed := range seeds {
				require.Empty(t, record(t, fmt.Sprint(name, seed), func(t testing.TB) { Gradients(t, test.ours, test.reference, test.c) }))
			}
		})
	}
}

var _ = testdevice.AlsoOnGPU(TestGradientsPassesRightFunctions)
