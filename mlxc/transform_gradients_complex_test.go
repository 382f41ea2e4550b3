package mlxc_test

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/internal/testdevice"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// complexFunctions holds differentiable functions of one or two complex arrays.
var complexFunctions = map[string]func(z, w *mlxc.Array) *mlxc.Array{
	"add":       (*mlxc.Array).Add,
	"sub":       (*mlxc.Array).Sub,
	"mul":       (*mlxc.Array).Mul,
	"div":       (*mlxc.Array).Div,
	"pow":       (*mlxc.Array).Pow,
	"logaddexp": (*mlxc.Array).LogAddExp,
	"maximum":   (*mlxc.Array).Maximum,
	"minimum":   (*mlxc.Array).Minimum,
	"where": func(z, w *mlxc.Array) *mlxc.Array {
		return mlxc.Where(mlxc.FromSlice([]bool{true, false, true, false}), z, w)
	},
	"vecdot": func(z, w *mlxc.Array) *mlxc.Array { return z.VecDot(w, 0) },
	"inner":  (*mlxc.Array).Inner,
	"outer":  (*mlxc.Array).Outer,
	"kron":   (*mlxc.Array).Kron,
}

func init() {
	for name, f := range map[string]func(*mlxc.Array) *mlxc.Array{
		"abs": (*mlxc.Array).Abs, "sign": (*mlxc.Array).Sign, "neg": (*mlxc.Array).Neg, "square": (*mlxc.Array).Square,
		"real": (*mlxc.Array).Real, "imag": (*mlxc.Array).Imag, "conjugate": (*mlxc.Array).Conjugate,
		"reciprocal": (*mlxc.Array).Reciprocal, "sqrt": (*mlxc.Array).Sqrt, "rsqrt": (*mlxc.Array).Rsqrt,
		"sin": (*mlxc.Array).Sin, "cos": (*mlxc.Array).Cos, "tan": (*mlxc.Array).Tan,
		"arcsin": (*mlxc.Array).Arcsin, "arccos": (*mlxc.Array).Arccos, "arctan": (*mlxc.Array).Arctan,
		"sinh": (*mlxc.Array).Sinh, "cosh": (*mlxc.Array).Cosh, "tanh": (*mlxc.Array).Tanh,
		"arcsinh": (*mlxc.Array).Arcsinh, "arccosh": (*mlxc.Array).Arccosh, "arctanh": (*mlxc.Array).Arctanh,
		"degrees": (*mlxc.Array).Degrees, "radians": (*mlxc.Array).Radians,
		"exp": (*mlxc.Array).Exp, "expm1": (*mlxc.Array).Expm1,
		"log": (*mlxc.Array).Log, "log2": (*mlxc.Array).Log2, "log10": (*mlxc.Array).Log10,
		"log1p":   (*mlxc.Array).Log1p,
		"sigmoid": (*mlxc.Array).Sigmoid, "erf": (*mlxc.Array).Erf, "erfinv": (*mlxc.Array).ErfInv,
		"sum":       func(z *mlxc.Array) *mlxc.Array { return z.Sum() },
		"cumsum":    func(z *mlxc.Array) *mlxc.Array { return z.CumSum(0) },
		"logsumexp": func(z *mlxc.Array) *mlxc.Array { return z.LogSumExp() },
		"mean":      func(z *mlxc.Array) *mlxc.Array { return z.Mean() },
		"softmax":   func(z *mlxc.Array) *mlxc.Array { return z.Softmax(0) },
	} {
		complexFunctions[name] = func(z, _ *mlxc.Array) *mlxc.Array { return f(z) }
	}
}

// along returns the difference quotient of f at in, in a direction.
func along(f mlxc.Func, in, direction arrays) *mlxc.Array {
	const h = 1.0 / 128
	at := func(h float64) *mlxc.Array {
		moved := make(arrays, len(in))
		for i := range in {
			moved[i] = in[i].Add(direction[i].Mul(mlxc.Scalar(complex64(complex(h, 0)))))
		}
		return f(moved)[0]
	}
	return at(h).Sub(at(-h)).Mul(mlxc.Scalar(float32(1 / (2 * h))))
}

// realDot is Re Σ conj(a)·b.
func realDot(a, b *mlxc.Array) *mlxc.Array { return a.Conjugate().Mul(b).Sum().Real() }

// A cotangent g gives G with Re(conj(g)·df) = Re(conj(G)·dz) for every dz: conj(f')·g where f is
// holomorphic. The same must hold for G as a function of z, which is the second derivative.
func TestComplexGradients(t *testing.T) {
	testdevice.CPUOnly(t, "uses complex operations that MLX lacks on CUDA or computes differently there")
	in := arrays{
		mlxc.FromSlice([]complex64{0.7 + 0.4i, -0.6 + 0.8i, 0.3 - 0.9i, -0.5 - 0.4i}),
		mlxc.FromSlice([]complex64{0.2 - 0.3i, 0.9 + 0.5i, -0.4 + 0.6i, 0.8 - 0.7i}),
	}
	directions := []arrays{
		{mlxc.FromSlice([]complex64{1, 1i, -1i, 1}), mlxc.FromSlice([]complex64{0.5i, 1, -1, 0.5})},
		{mlxc.FromSlice([]complex64{0.6 - 0.3i, -1, 1, 0.2 + 0.9i}), mlxc.FromSlice([]complex64{1, 0.7i, 1i, -0.3})},
	}
	for name, op := range complexFunctions {
		t.Run(name, func(t *testing.T) {
			f := func(a arrays) arrays { return arrays{op(a[0], a[1])} }
			y := f(in)[0]
			if slices.Contains([]string{"sigmoid", "expm1", "erf", "erfinv"}, name) {
				require.ErrorContains(t, y.Err(), "Not supported for complex64")
				return
			}
			cotangent := func(of *mlxc.Array, seed float32) *mlxc.Array {
				c := counting(of.Shape()...).AddScalar(float64(seed))
				if of.DType() != mlxc.Complex64 {
					return c.Sin()
				}
				return c.Sin().Add(c.Cos().Mul(mlxc.Scalar[complex64](1i)))
			}
			gradients := func(f mlxc.Func, in arrays, g *mlxc.Array) arrays {
				_, grads, err := mlxc.VJP(f, in, arrays{g})
				require.NoError(t, err)
				return grads
			}
			requireClose := func(want, got *mlxc.Array, what string) {
				t.Helper()
				ok, err := mlxc.Item[bool](got.AllClose(want, mlxc.Tolerance{Relative: 4e-3, Absolute: 4e-3}))
				require.NoError(t, err, what)
				require.True(t, ok, "%s: %v, want %v", what, got, want)
			}
			g := cotangent(y, 1)
			first := func(a arrays) arrays {
				_, grads, err := mlxc.VJP(f, a, arrays{g})
				if err != nil {
					return arrays{mlxc.InvalidArray(err)}
				}
				return arrays{mlxc.Stack(0, grads...)}
			}
			for _, d := range directions {
				want := along(f, in, d)
				_, tangents, err := mlxc.JVP(f, in, d)
				require.NoError(t, err)
				requireClose(want, tangents[0], "jvp")
				grads := gradients(f, in, g)
				requireClose(realDot(g, want), realDot(grads[0], d[0]).Add(realDot(grads[1], d[1])), "vjp")

				want = along(first, in, d)
				g2 := cotangent(first(in)[0], 3)
				grads = gradients(first, in, g2)
				requireClose(realDot(g2, want), realDot(grads[0], d[0]).Add(realDot(grads[1], d[1])), "vjp of the vjp")
				if _, tangents, err = mlxc.JVP(first, in, d); err == nil { // MLX lacks some rules
					requireClose(want, tangents[0], "jvp of the vjp")
				}
			}
		})
	}
}

// The rules hold under Vmap, Compile and Checkpoint, and leave no nodes in exported files.
func TestComplexGradientsInsideTransforms(t *testing.T) {
	testdevice.CPUOnly(t, "uses complex operations that MLX lacks on CUDA or computes differently there")
	z := mlxc.FromSlice([]complex64{0.7 + 0.4i, -0.6 + 0.8i})
	w := mlxc.FromSlice([]complex64{0.2 - 0.3i, 0.9 + 0.5i})
	f := func(a arrays) arrays {
		return arrays{a[0].Cos().Add(a[0].Sqrt()).Mul(a[0].Pow(a[1])).Add(a[0].Abs()).Add(a[0].Sign())}
	}
	grads := func(f mlxc.Func, a arrays) arrays {
		_, g, err := mlxc.VJP(f, a, arrays{mlxc.OnesLike(a[0])})
		require.NoError(t, err)
		return g
	}
	want := grads(f, arrays{z, w})
	require.NotEqual(t, read[complex64](t, want[0]), read[complex64](t, want[0].Conjugate()))
	for name, got := range map[string]arrays{
		"Vmap inside":  grads(mlxc.Vmap(f, nil, nil), arrays{z, w}),
		"Vmap outside": mlxc.Vmap(func(a arrays) arrays { return grads(f, a) }, nil, nil)(arrays{z, w}),
		"Checkpoint":   grads(mlxc.Checkpoint(f), arrays{z, w}),
	} {
		for i := range want {
			require.InDeltaMapValues(t, parts(t, want[i]), parts(t, got[i]), 1e-5, name)
		}
	}
	compiled := mlxc.Compile(func(a arrays) arrays { return grads(f, a) })
	defer compiled.Close()
	for range 2 {
		got, err := compiled.Call(z, w)
		require.NoError(t, err)
		require.InDeltaMapValues(t, parts(t, want[0]), parts(t, got[0]), 1e-5)
	}

	path := filepath.Join(t.TempDir(), "f.mlxfn")
	require.NoError(t, mlxc.Export(path, f, z, w))
	imported, err := mlxc.Import(path)
	require.NoError(t, err)
	defer imported.Close()
	out, err := imported.Call(z, w)
	require.NoError(t, err)
	require.InDeltaMapValues(t, parts(t, f(arrays{z, w})[0]), parts(t, out[0]), 1e-5)
}

// parts returns the real and imaginary parts by position.
func parts(t *testing.T, a *mlxc.Array) map[int]float64 {
	t.Helper()
	all := map[int]float64{}
	for i, v := range read[complex64](t, a) {
		all[2*i], all[2*i+1] = float64(real(v)), float64(imag(v))
	}
	return all
}

// At 0, sign and abs have gradient 0, as has a power of 0 with respect to its exponent.
func TestComplexGradientsAtZero(t *testing.T) {
	zero, two := mlxc.Scalar[complex64](0), mlxc.Scalar[complex64](2)
	for name, f := range map[string]func(a *mlxc.Array) *mlxc.Array{
		"sign": (*mlxc.Array).Sign,
		"abs":  (*mlxc.Array).Abs,
		"pow":  zero.Pow,
	} {
		x := zero
		if name == "pow" {
			x = two
		}
		_, g, err := mlxc.VJP(single(f), arrays{x}, arrays{mlxc.OnesLike(f(x))})
		require.NoError(t, err)
		require.Equal(t, []complex64{0}, read[complex64](t, g[0]), name)
	}
}
