package compare

import (
	"fmt"
	"math"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/compare/oracle"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// recorder is a test that keeps its failures.
type recorder struct {
	testing.TB
	name     string
	errors   []string
	cleanups []func()
}

func (r *recorder) Helper()      {}
func (r *recorder) Name() string { return r.name }
func (r *recorder) Failed() bool { return len(r.errors) > 0 }
func (r *recorder) Cleanup(f func()) {
	r.cleanups = append(r.cleanups, f)
}

func (r *recorder) Errorf(format string, args ...any) {
	r.errors = append(r.errors, fmt.Sprintf(format, args...))
}

func (r *recorder) Fatalf(format string, args ...any) {
	r.Errorf(format, args...)
	panic(r)
}

// record runs f with a test of a name and returns its failures.
func record(t *testing.T, name string, f func(t testing.TB)) (failures []string) {
	r := &recorder{TB: t, name: name}
	defer func() {
		if p := recover(); p != nil && p != any(r) {
			panic(p)
		}
		for _, f := range r.cleanups {
			f()
		}
		failures = r.errors
	}()
	f(r)
	return nil
}

// scaledSquare is y = w·x² of rows x and a vector w, in float32 arithmetic. change alters its gradients, which are
// float32, before they are rounded.
func scaledSquare(change func(dx, dw *mlxc.Array) (*mlxc.Array, *mlxc.Array)) mlxc.Func {
	forward := func(in []*mlxc.Array) []*mlxc.Array {
		x, w := in[0].AsType(mlxc.Float32), in[1].AsType(mlxc.Float32)
		return []*mlxc.Array{x.Square().Mul(w).AsType(in[0].DType())}
	}
	return mlxc.CustomVJP(forward, func(in, cotangents, _ []*mlxc.Array) []*mlxc.Array {
		x, w, dy := in[0].AsType(mlxc.Float32), in[1].AsType(mlxc.Float32), cotangents[0].AsType(mlxc.Float32)
		dx, dw := x.MulScalar(2).Mul(w).Mul(dy), x.Square().Mul(dy).Sum(0)
		if change != nil {
			dx, dw = change(dx, dw)
		}
		return []*mlxc.Array{dx.AsType(in[0].DType()), dw.AsType(in[1].DType())}
	})
}

// scaledSquare64 is the same function in float64.
func scaledSquare64(in []oracle.Tensor) []oracle.Tensor {
	y := oracle.New(in[0].Shape...)
	for i, x := range in[0].Data {
		y.Data[i] = in[1].Data[i%len(in[1].Data)] * x * x
	}
	return []oracle.Tensor{y}
}

func scaledSquareVJP64(in, ct []oracle.Tensor) []oracle.Tensor {
	dx, dw := oracle.New(in[0].Shape...), oracle.New(in[1].Shape...)
	for i, x := range in[0].Data {
		j := i % len(dw.Data)
		dx.Data[i] = 2 * in[1].Data[j] * x * ct[0].Data[i]
		dw.Data[j] += x * x * ct[0].Data[i]
	}
	return []oracle.Tensor{dx, dw}
}

func rowsAndWeight() Case {
	return Case{Inputs: []Input{{Name: "x", Dims: []string{"rows", "d"}}, {Name: "w", Dims: []string{"d"}}}}
}

// references are the three kinds of references of scaledSquare.
func references() map[string]Reference {
	return map[string]Reference{
		"gradient":    {Forward: scaledSquare64, Gradient: scaledSquareVJP64},
		"differences": {Forward: scaledSquare64},
		"composition": {Composed: func(in []*mlxc.Array) []*mlxc.Array { return []*mlxc.Array{in[0].Square().Mul(in[1])} }},
	}
}

// firstElement is true at the first element of a.
func firstElement(a *mlxc.Array) *mlxc.Array {
	return mlxc.Arange(mlxc.Int32, 0, float64(a.Size()), 1).Reshape(a.Shape()...).Equal(mlxc.Scalar[int32](0))
}

// Wrong gradients of every kind are found and shrunk, whatever the reference.
func TestGradientsFindsMistakes(t *testing.T) {
	type arrays = *mlxc.Array
	for name, test := range map[string]struct {
		change  func(dx, dw arrays) (arrays, arrays)
		place   string // the start of the failure
		message string
	}{
		"missing term": {
			func(dx, dw arrays) (arrays, arrays) { return dx.MulScalar(0.5), dw },
			"dx is wrong in float32 at d=1, rows=1:", "(?s)off by more than .* in 64 of 64 elements.*\n    x = \\[\\[-?[123]\\]\\]\n    w = \\[",
		},
		"wrong sign of one element": {
			func(dx, dw arrays) (arrays, arrays) { return dx, mlxc.Where(firstElement(dw), dw.Neg(), dw) },
			"dw is wrong in float32 at d=1, rows=1:", `The largest error is in dw\[0\]: got -?(\d+[.\d]*), want`,
		},
		"the sum of several rows": {
			func(dx, dw arrays) (arrays, arrays) {
				if dx.Dim(0) > 1 {
					dw = dw.MulScalar(1.5)
				}
				return dx, dw
			},
			"dw is wrong in float32 at d=1, rows=2:", `rows=2`,
		},
		"a dimension that 4 does not divide": {
			func(dx, dw arrays) (arrays, arrays) {
				if dx.Dim(1) > 4 && dx.Dim(1)%4 != 0 {
					dx = dx.MulScalar(1.1)
				}
				return dx, dw
			},
			"dx is wrong in float32 at d=5, rows=1:", `got`,
		},
		"NaN": {
			func(dx, dw arrays) (arrays, arrays) {
				return mlxc.Where(firstElement(dx), mlxc.Scalar(float32(math.NaN())), dx), dw
			},
			"dx is wrong in float32 at d=1, rows=1:", `NaN or infinity out of place.*\nThe|got NaN, want`,
		},
		"shape": {
			func(dx, dw arrays) (arrays, arrays) { return dx, dw.ExpandDims(0) },
			"no result in float32 at d=1, rows=1:", `result 1 of the vjp must have the shape and dtype of argument 1`,
		},
	} {
		for kind, reference := range references() {
			like := rowsAndWeight()
			like.MLX = scaledSquare(nil) // its errors are allowed as well
			for with, c := range map[string]Case{"alone": rowsAndWeight(), "and MLX": like} {
				t.Run(name+" by "+kind+" "+with, func(t *testing.T) {
					got := record(t, "TestOfAUser", func(t testing.TB) { Gradients(t, scaledSquare(test.change), reference, c) })
					require.Len(t, got, 1)
					t.Log(got[0])
					require.True(t, strings.HasPrefix(got[0], test.place), got[0])
					require.Regexp(t, test.message, got[0])
					require.Contains(t, got[0], "go test -run '^TestOfAUser$' -compare.case='float32 d=")
				})
			}
		}
	}
}

// Half precision in the arithmetic is found, and named.
func TestGradientsFindsLostPrecision(t *testing.T) {
	inHalf := func(in []*mlxc.Array) []*mlxc.Array {
		y := in[0].Exp().Mul(in[0].Sigmoid()).Mul(in[0].Cos())
		return []*mlxc.Array{y}
	}
	inFloat32 := func(in []*mlxc.Array) []*mlxc.Array {
		return []*mlxc.Array{inHalf([]*mlxc.Array{in[0].AsType(mlxc.Float32)})[0].AsType(in[0].DType())}
	}
	x := Case{Inputs: []Input{{Name: "x", Dims: []string{"n"}, Values: Uniform(-2, 2)}}}
	got := record(t, "TestHalf", func(t testing.TB) { Gradients(t, inHalf, Reference{Composed: inHalf}, x) })
	require.Len(t, got, 1)
	require.Regexp(t, `^(y|dx) is wrong in float16 at n=\d+:`, got[0])
	require.Contains(t, got[0], "\nThe same input passes in float32: in float16 the precision or the formula differs.")
	require.Empty(t, record(t, "TestHalf", func(t testing.TB) { Gradients(t, inFloat32, Reference{Composed: inHalf}, x) }))

	// An equally accurate implementation excuses it, and so does leaving out the dtypes.
	like := x
	like.MLX = inHalf
	require.Empty(t, record(t, "TestHalf", func(t testing.TB) { Gradients(t, inHalf, Reference{Composed: inHalf}, like) }))
	x.DTypes = []mlxc.DType{mlxc.Float32}
	require.Empty(t, record(t, "TestHalf", func(t testing.TB) { Gradients(t, inHalf, Reference{Composed: inHalf}, x) }))
}

// A result of another dtype has no gradient to compare.
func TestGradientsFindsAnotherDType(t *testing.T) {
	wide := func(in []*mlxc.Array) []*mlxc.Array {
		return []*mlxc.Array{in[0].AsType(mlxc.Float32).Square().Mul(in[1])}
	}
	got := record(t, "TestWide", func(t testing.TB) { Gradients(t, wide, Reference{Forward: scaledSquare64}, rowsAndWeight()) })
	require.Len(t, got, 1)
	require.Regexp(t, `^no result in float16 at d=1, rows=1: .*float32`, got[0])
	c := rowsAndWeight()
	c.Outputs = []Output{{Name: "loss", DType: mlxc.Float32}}
	require.Empty(t, record(t, "TestWide", func(t testing.TB) { Gradients(t, wide, Reference{Forward: scaledSquare64}, c) }))

	wrong := mlxc.CustomVJP(func(in []*mlxc.Array) []*mlxc.Array { return []*mlxc.Array{in[0].Square().Mul(in[1])} },
		func(in, ct, _ []*mlxc.Array) []*mlxc.Array {
			x, w, dy := in[0].AsType(mlxc.Float32), in[1], ct[0]
			return []*mlxc.Array{x.MulScalar(2).Mul(w).Mul(dy), x.Square().Mul(dy).Sum(0)}
		})
	got = record(t, "TestWide", func(t testing.TB) { Gradients(t, wrong, Reference{Forward: scaledSquare64}, rowsAndWeight()) })
	require.Len(t, got, 1)
	require.Regexp(t, `^(no result|y is wrong) in float16`, got[0])
}

// The command of a failure runs the same input again, in the same test only.
func TestGradientsRunsOneInput(t *testing.T) {
	const variable = "MLXGRAD_TEST_GRADIENTS"
	calls := 0
	twice := func(t testing.TB) {
		wrong := scaledSquare(func(dx, dw *mlxc.Array) (*mlxc.Array, *mlxc.Array) { return dx.MulScalar(1.5), dw })
		counted := func(in []*mlxc.Array) []*mlxc.Array { calls++; return wrong(in) }
		Gradients(t, scaledSquare(nil), references()["gradient"], rowsAndWeight())
		Gradients(t, counted, references()["gradient"], rowsAndWeight())
	}
	if os.Getenv(variable) != "" {
		twice(t)
		t.Logf("%d calls", calls)
		return
	}
	got := record(t, t.Name(), twice)
	require.Len(t, got, 1)
	_, code, found := strings.Cut(got[0], "-compare.case='")
	require.True(t, found)
	code, _, _ = strings.Cut(code, "'")
	require.Contains(t, code, "call=1 float32")
	program, err := os.Executable()
	require.NoError(t, err)
	again := exec.Command(program, "-test.run=^"+t.Name()+"$", "-test.v", "-compare.case="+code)
	again.Env = append(os.Environ(), variable+"=1")
	out, err := again.CombinedOutput()
	require.Error(t, err, "%s", out)
	want, _, _ := strings.Cut(got[0], "\nFound at ")
	for line := range strings.Lines(want) {
		require.Contains(t, string(out), strings.TrimSpace(line))
	}
	for _, wrong := range []string{"float32 seed=7", "float8", "float32 d=1 rows=2 k=3 seed=7", "call=1 float32 d=1 rows=1 x:gone seed=7"} {
		again := exec.Command(program, "-test.run=^"+t.Name()+"$", "-compare.case="+wrong)
		again.Env = append(os.Environ(), variable+"=1")
		out, err := again.CombinedOutput()
		require.Error(t, err)
		require.Contains(t, string(out), "compare.Gradients: -compare.case=")
	}
}

func TestGradientsRefusesArguments(t *testing.T) {
	right, reference := scaledSquare(nil), references()["gradient"]
	for message, run := range map[string]func(t testing.TB){
		"there are no cases":           func(t testing.TB) { Gradients(t, right, reference) },
		"Ours is nil":                  func(t testing.TB) { Gradients(t, nil, reference, rowsAndWeight()) },
		"Forward and Composed are nil": func(t testing.TB) { Gradients(t, right, Reference{}, rowsAndWeight()) },
		"Gradient is set and its Forward is nil": func(t testing.TB) {
			Gradients(t, right, Reference{Gradient: scaledSquareVJP64}, rowsAndWeight())
		},
		"case 0 sets Ours or Reference": func(t testing.TB) { Gradients(t, right, reference, Case{Ours: right}) },
		"Inputs is empty":               func(t testing.TB) { Gradients(t, right, reference, Case{}) },
		"has Dims and Shape": func(t testing.TB) {
			Gradients(t, right, reference, Case{Inputs: []Input{{Name: "x", Dims: []string{"d"}, Shape: []int{2}}}})
		},
		`Sizes has the dimension "k"`: func(t testing.TB) {
			c := rowsAndWeight()
			c.Sizes = map[string][]int{"k": {1}}
			Gradients(t, right, reference, c)
		},
		"none may be negative": func(t testing.TB) {
			c := rowsAndWeight()
			c.Sizes = map[string][]int{"d": {-1}}
			Gradients(t, right, reference, c)
		},
		"neither Values nor Below": func(t testing.TB) {
			Gradients(t, right, reference, Case{Inputs: []Input{{Name: "ids", Kind: Index, Dims: []string{"n"}}}})
		},
		"Below of the input ids is \"k\"": func(t testing.TB) {
			Gradients(t, right, reference, Case{Inputs: []Input{{Name: "ids", Kind: Index, Below: "k", Dims: []string{"n"}}}})
		},
		"letters, digits": func(t testing.TB) {
			Gradients(t, right, reference, Case{Inputs: []Input{{Name: "my x", Dims: []string{"n"}}}})
		},
		"is taken": func(t testing.TB) {
			Gradients(t, right, reference, Case{Inputs: []Input{{Name: "x"}, {Name: "x"}}})
		},
		"the reference failed: it returns 1 outputs; the case has 2": func(t testing.TB) {
			c := rowsAndWeight()
			c.Outputs = []Output{{Name: "y"}, {Name: "z"}}
			Gradients(t, right, reference, c)
		},
		"the layout transposed needs at least 2 axes": func(t testing.TB) {
			Gradients(t, right, reference, Case{Inputs: []Input{{Name: "x", Dims: []string{"n"}, Layout: Transposed}}})
		},
		"no size may be negative": func(t testing.TB) {
			Gradients(t, right, reference, Case{Inputs: []Input{{Name: "x", Shape: []int{-2}}}})
		},
		"the sizes of n are [0 2]; they must be positive": func(t testing.TB) {
			Gradients(t, right, reference, Case{
				Inputs: []Input{{Name: "x", Dims: []string{"n"}}, {Name: "ids", Dims: []string{"m"}, Kind: Index, Below: "n"}},
				Sizes:  map[string][]int{"n": {0, 2}},
			})
		},
		"the dtype float64 is not supported": func(t testing.TB) {
			c := rowsAndWeight()
			c.DTypes = []mlxc.DType{mlxc.Float64}
			Gradients(t, right, reference, c)
		},
		"DTypes is empty": func(t testing.TB) {
			c := rowsAndWeight()
			c.DTypes = []mlxc.DType{}
			Gradients(t, right, reference, c)
		},
		"nothing can be compared": func(t testing.TB) {
			c := Case{Inputs: []Input{{Name: "x", Shape: []int{2}, Kind: Constant}}, Outputs: []Output{{Name: "y", FromMLX: true}}}
			Gradients(t, right, reference, c)
		},
		"none of 20 inputs has elements": func(t testing.TB) {
			c := rowsAndWeight()
			c.Sizes, c.DTypes = map[string][]int{"d": {0}}, []mlxc.DType{mlxc.Float32}
			Gradients(t, right, reference, c)
		},
		"panic: out of ink, at": func(t testing.TB) {
			Gradients(t, right, Reference{Forward: func([]oracle.Tensor) []oracle.Tensor { panic("out of ink") }}, rowsAndWeight())
		},
		"nothing was compared": func(t testing.TB) {
			c := rowsAndWeight()
			c.Inputs[0].Values = Normal(1e30)
			c.DTypes = []mlxc.DType{mlxc.Float32}
			Gradients(t, right, reference, c)
		},
	} {
		got := record(t, "TestOfAUser", run)
		require.Len(t, got, 1)
		require.Contains(t, got[0], message)
	}
	require.False(t, Run(t.Context(), []Op{{Name: "x", Cases: []Case{rowsAndWeight()}}}, Options{}).Succeeded(), "Run needs shapes")
}
