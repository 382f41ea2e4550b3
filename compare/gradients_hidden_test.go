package compare

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/compare/oracle"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// perElement is f of each element with the gradient dy·slope(x), in float32.
func perElement(f, slope func(x *mlxc.Array) *mlxc.Array) mlxc.Func {
	wide := func(x *mlxc.Array) *mlxc.Array { return x.AsType(mlxc.Float32) }
	return mlxc.CustomVJP(
		func(in []*mlxc.Array) []*mlxc.Array { return []*mlxc.Array{f(wide(in[0])).AsType(in[0].DType())} },
		func(in, ct, _ []*mlxc.Array) []*mlxc.Array {
			return []*mlxc.Array{slope(wide(in[0])).Mul(wide(ct[0])).AsType(in[0].DType())}
		})
}

func slope64(f func(float64) float64) oracle.Gradient {
	return func(in, ct []oracle.Tensor) []oracle.Tensor {
		dx := oracle.New(in[0].Shape...)
		for i, x := range in[0].Data {
			dx.Data[i] = f(x) * ct[0].Data[i]
		}
		return []oracle.Tensor{dx}
	}
}

// oneOf draws from a list of values.
func oneOf(values ...float64) Values {
	return func(rng *rand.Rand, shape []int) []float64 {
		out := make([]float64, oracle.Size(shape))
		for i := range out {
			out[i] = values[rng.IntN(len(values))]
		}
		return out
	}
}

// Mistakes at kinks and ties, and at large sizes, are found under every name of a test.
func TestGradientsFindsHiddenMistakes(t *testing.T) {
	rows := func(change func(c *Case)) Case {
		c := Case{Inputs: []Input{{Name: "x", Dims: []string{"rows", "d"}}}}
		if change != nil {
			change(&c)
		}
		return c
	}
	scalar := func(v float64) *mlxc.Array { return mlxc.Scalar(float32(v)) }
	wrongAbove := func(d int) mlxc.Func {
		return perElement((*mlxc.Array).Square, func(x *mlxc.Array) *mlxc.Array {
			if x.Dim(1) > d {
				return x.MulScalar(3)
			}
			return x.MulScalar(2)
		})
	}
	square := Reference{Forward: perElement64(func(v float64) float64 { return v * v })}
	squareWithGradient := Reference{Forward: square.Forward, Gradient: slope64(func(v float64) float64 { return 2 * v })}
	hinge := Reference{
		Forward: perElement64(func(v float64) float64 { return max(v-1, 0) }),
		Gradient: slope64(func(v float64) float64 {
			if v > 1 {
				return 1
			}
			return 0
		}),
	}
	abs := perElement((*mlxc.Array).Abs, func(x *mlxc.Array) *mlxc.Array { return x.Div(x.Abs()) })
	absReference := Reference{Forward: perElement64(math.Abs)}
	maximum := Reference{
		Forward: func(in []oracle.Tensor) []oracle.Tensor {
			y := oracle.New(in[0].Shape[0])
			for i := range y.Data {
				y.Data[i] = max(in[0].Data[2*i], in[0].Data[2*i+1])
			}
			return []oracle.Tensor{y}
		},
		Gradient: func(in, ct []oracle.Tensor) []oracle.Tensor {
			dx := oracle.New(in[0].Shape...)
			for i, u := range ct[0].Data {
				switch a, b := in[0].Data[2*i], in[0].Data[2*i+1]; {
				case a > b:
					dx.Data[2*i] = u
				case a < b:
					dx.Data[2*i+1] = u
				default:
					dx.Data[2*i], dx.Data[2*i+1] = u/2, u/2
				}
			}
			return []oracle.Tensor{dx}
		},
	}
	unsharedMaximum := mlxc.CustomVJP(
		func(in []*mlxc.Array) []*mlxc.Array { return []*mlxc.Array{in[0].Max(-1)} },
		func(in, ct, _ []*mlxc.Array) []*mlxc.Array {
			at := in[0].Equal(in[0].Max(-1).ExpandDims(-1)).AsType(in[0].DType())
			return []*mlxc.Array{at.Mul(ct[0].ExpandDims(-1))}
		})
	for name, test := range map[string]struct {
		ours      mlxc.Func
		reference Reference
		c         Case
		message   string
	}{
		"half at the kink": {
			perElement(func(x *mlxc.Array) *mlxc.Array { return x.SubScalar(1).Maximum(scalar(0)) }, func(x *mlxc.Array) *mlxc.Array {
				return mlxc.Where(x.Equal(scalar(1)), scalar(0.5), scalar(1).Less(x).AsType(mlxc.Float32))
			}),
			hinge, rows(func(c *Case) { c.Inputs[0].Values = oneOf(-2, -1, -0.5, 1, 2, 3) }), "dx is wrong in float32 at d=1, rows=1",
		},
		"all of a tie": {
			unsharedMaximum, maximum, rows(func(c *Case) {
				c.Inputs[0].Values, c.Sizes = oneOf(-1, 1, 2), map[string][]int{"d": {2}}
			}), "dx is wrong in float32 at d=2, rows=1",
		},
		"NaN at a kink": {
			abs, absReference, rows(func(c *Case) { c.Inputs[0].Values = oneOf(-2, -1, 0, 1, 3) }), "got NaN, want a finite number",
		},
		"NaN where all is undefined": {
			abs, absReference, rows(func(c *Case) { c.Inputs[0].Values = oneOf(0) }), "got NaN, want a finite number",
		},
		"the largest default size": {wrongAbove(128), square, rows(nil), "dx is wrong in float32 at d=129, rows=1"},
		"a listed size": {
			wrongAbove(1024), square, rows(func(c *Case) { c.Sizes = map[string][]int{"rows": {1, 2}, "d": {64, 4096}} }),
			"dx is wrong in float32 at d=4096, rows=1",
		},
		"a listed size beyond the limit": {
			wrongAbove(1024), squareWithGradient,
			rows(func(c *Case) { c.Sizes = map[string][]int{"rows": {1, 2}, "d": {64, 32768}} }), "at d=32768, rows=1",
		},
	} {
		t.Run(name, func(t *testing.T) {
			for i := range 2 {
				got := record(t, fmt.Sprint("Test", i), func(t testing.TB) { Gradients(t, test.ours, test.reference, test.c) })
				require.NotEmpty(t, got)
				require.Contains(t, got[0], test.message)
			}
		})
	}
}

// A case with a mistake in its description gets a message.
func TestRunReportsInvalidCases(t *testing.T) {
	valid := Case{
		Name: "x", Inputs: []Input{{Name: "x", Shape: []int{4}}}, Outputs: []Output{{Name: "y", Shape: []int{4}}},
		Reference: Reference{
			Forward:  perElement64(func(v float64) float64 { return v * v }),
			Gradient: slope64(func(v float64) float64 { return 2 * v }),
		},
		Ours: unary((*mlxc.Array).Square),
	}
	for message, change := range map[string]func(c *Case, opt *Options){
		"the dtype float64 is not supported": func(_ *Case, opt *Options) { opt.DTypes = []mlxc.DType{mlxc.Float64} },
		"the dtype int32 is not supported":   func(c *Case, _ *Options) { c.DTypes = []mlxc.DType{mlxc.Int32} },
		"DTypes is empty":                    func(c *Case, _ *Options) { c.DTypes = []mlxc.DType{} },
		"interleaved needs at least 3 axes":  func(c *Case, _ *Options) { c.Inputs[0].Layout = Interleaved },
		`no layout "column-major"`:           func(c *Case, _ *Options) { c.Outputs[0].Layout = "column-major" },
		"the shape of the input x is [-4]":   func(c *Case, _ *Options) { c.Inputs[0].Shape = []int{-4} },
		"4 elements of y; its shape is [5]":  func(c *Case, _ *Options) { c.Outputs[0].Shape = []int{5} },
		"panic: out of ink, at gradients_hidden_test.go:": func(c *Case, _ *Options) {
			c.Forward = func([]oracle.Tensor) []oracle.Tensor { panic("out of ink") }
		},
	} {
		c, opt := valid, Options{}
		c.Inputs, c.Outputs = []Input{valid.Inputs[0]}, []Output{valid.Outputs[0]}
		change(&c, &opt)
		r := Run(t.Context(), []Op{{Name: "op", Cases: []Case{c}}}, opt)
		require.False(t, r.Succeeded())
		require.NotEmpty(t, r.Rows)
		require.Contains(t, r.Rows[0].Message, message)
	}
}

// An input of -compare.case that no call or case takes is an error.
func TestGradientsReportsAnInputThatIsNotRun(t *testing.T) {
	defer func() { *caseFlag = "" }()
	right, reference := scaledSquare(nil), references()["gradient"]
	for text, want := range map[string]string{
		"call=3 float32 d=1 rows=1 seed=1": "nothing was run",
		"case=2 float32 d=1 rows=1 seed=1": "nothing was run",
		"float32 d=1 rows=1 seed=1":        "",
		"float16 d=1 rows=1 seed=1":        "does not run in float16",
	} {
		*caseFlag = text
		c := rowsAndWeight()
		c.DTypes = []mlxc.DType{mlxc.Float32}
		got := record(t, "TestOfAUser", func(t testing.TB) { Gradients(t, right, reference, c) })
		if want == "" {
			require.Empty(t, got)
			continue
		}
		require.Len(t, got, 1)
		require.Contains(t, got[0], want)
	}
}
