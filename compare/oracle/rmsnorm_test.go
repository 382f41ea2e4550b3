package oracle

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// rmsNormFuncs returns RMSNorm and RMSNormVJP with the types that CheckDirectional takes.
func rmsNormFuncs(eps float64) (Func, Gradient) {
	forward := func(in []Tensor) []Tensor { return []Tensor{RMSNorm(in[0], &in[1], eps)} }
	gradient := func(in, ct []Tensor) []Tensor {
		dx, dw := RMSNormVJP(in[0], &in[1], eps, ct[0])
		return []Tensor{dx, dw}
	}
	return forward, gradient
}

func TestRMSNormByHand(t *testing.T) {
	// mean(x²) = 4, eps = 0, so r = 1/2.
	x := Tensor{Shape: []int{1, 2}, Data: []float64{2, -2}}
	w := Tensor{Shape: []int{2}, Data: []float64{3, 5}}
	require.Equal(t, []float64{3, -5}, RMSNorm(x, &w, 0).Data)
	require.Equal(t, []float64{1, -1}, RMSNorm(x, nil, 0).Data)

	dy := Tensor{Shape: []int{1, 2}, Data: []float64{1, 1}}
	dx, dw := RMSNormVJP(x, &w, 0, dy)
	// s = 1·3·2 − 1·5·2 = −4; dx = ½(3 + 2·4·¼/2), ½(5 − 2·4·¼/2).
	require.Equal(t, []float64{2, 2}, dx.Data)
	require.Equal(t, []float64{1, -1}, dw.Data)
}

func TestRMSNormGradientMatchesForward(t *testing.T) {
	for _, shape := range [][]int{{1}, {33}, {3, 1}, {3, 7}, {2, 3, 4, 31}} {
		rng := rand.New(rand.NewPCG(1, uint64(len(shape))))
		in := like([]Tensor{New(shape...), New(shape[len(shape)-1])}, rng)
		forward, gradient := rmsNormFuncs(1e-5)
		require.NoError(t, CheckDirectional(forward, gradient, in, nil, rng), "shape %v", shape)
	}
}

func TestDirectionalDetectsWrongGradients(t *testing.T) {
	forward, right := rmsNormFuncs(1e-5)
	wrong := map[string]Gradient{
		"dx scaled": func(in, ct []Tensor) []Tensor {
			g := right(in, ct)
			for i := range g[0].Data {
				g[0].Data[i] *= 1 + 1e-4
			}
			return g
		},
		"dx without its second term": func(in, ct []Tensor) []Tensor {
			g := right(in, ct)
			for i := range in[0].Shape[0] {
				r := inverseRMS(in[0].row(i), 1e-5)
				for j := range g[0].row(i) {
					g[0].row(i)[j] = r * ct[0].row(i)[j] * in[1].Data[j]
				}
			}
			return g
		},
		"one row of dx is the next one's": func(in, ct []Tensor) []Tensor {
			g := right(in, ct)
			copy(g[0].row(0), g[0].row(1))
			return g
		},
		"dw of the first row only": func(in, ct []Tensor) []Tensor {
			g := right(in, ct)
			r := inverseRMS(in[0].row(0), 1e-5)
			for j := range g[1].Data {
				g[1].Data[j] = ct[0].Data[j] * in[0].Data[j] * r
			}
			return g
		},
		"dw negative": func(in, ct []Tensor) []Tensor {
			g := right(in, ct)
			for j := range g[1].Data {
				g[1].Data[j] = -g[1].Data[j]
			}
			return g
		},
		"dw not a number": func(in, ct []Tensor) []Tensor {
			g := right(in, ct)
			g[1].Data[0] = math.NaN()
			return g
		},
		"dw missing":      func(in, ct []Tensor) []Tensor { return right(in, ct)[:1] },
		"dw of x's shape": func(in, ct []Tensor) []Tensor { g := right(in, ct); return []Tensor{g[0], g[0]} },
	}
	for name, gradient := range wrong {
		t.Run(name, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(2, 3))
			in := like([]Tensor{New(5, 9), New(9)}, rng)
			require.Error(t, CheckDirectional(forward, gradient, in, nil, rng))
		})
	}
}

func TestDirectionalKeepsFixedInputs(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 5))
	in := like([]Tensor{New(5, 9), New(9)}, rng)
	forward, gradient := rmsNormFuncs(1e-5)
	onlyX := func(in, ct []Tensor) []Tensor { return gradient(in, ct)[:1] }
	require.NoError(t, CheckDirectional(forward, onlyX, in, map[int]bool{1: true}, rng))
}
