package oracle

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDifferences(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	in := like([]Tensor{New(3, 5), New(5), New(2, 2)}, rng)
	for j := range 5 {
		in[0].Data[j], in[0].Data[5+j] = 1e-3*in[0].Data[j], 1e4*in[0].Data[5+j]
	}
	forward := func(in []Tensor) []Tensor { return []Tensor{RMSNorm(in[0], &in[1], 1e-5)} }
	cotangents := like(forward(in), rng)
	dx, dw := RMSNormVJP(in[0], &in[1], 1e-5, cotangents[0])
	got := Differences(forward, in, cotangents, []int{1, 0})
	require.Len(t, got, 2)
	for k, want := range []Tensor{dw, dx} {
		require.Equal(t, want.Shape, got[k].Shape)
		for j, v := range want.Data {
			require.InDelta(t, v, got[k].Data[j], 1e-9*(1+math.Abs(v)))
		}
	}
}

// In a row of zeros the step grows if the function is large, and stays small if it bends sharply. Only some elements of
// a large input are differentiated.
func TestDifferencesInRowsOfZeros(t *testing.T) {
	u := []Tensor{{Shape: []int{2}, Data: []float64{1, 1}}}
	for name, f := range map[string]func(v float64) float64{
		"far":   func(v float64) float64 { return 1000 + v },
		"sharp": func(v float64) float64 { return v / math.Sqrt(v*v+1e-6) / 1000 },
	} {
		got := Differences(func(in []Tensor) []Tensor {
			return []Tensor{{Shape: []int{2}, Data: []float64{f(in[0].Data[0]), f(in[0].Data[1])}}}
		}, []Tensor{New(2)}, u, []int{0})[0]
		require.InDeltaSlice(t, []float64{1, 1}, got.Data, 1e-8, name)
	}
	identity := func(in []Tensor) []Tensor { return in }
	large := []Tensor{New(1000)}
	defined := 0
	got := SampledDifferences(identity, large, large, []int{0}, 10)[0].Data
	for _, v := range got {
		if !math.IsNaN(v) {
			defined++
		}
	}
	require.InDelta(t, 11, defined, 1)
	require.Zero(t, got[0]+got[999])
}

func TestDifferencesOfExtremes(t *testing.T) {
	identity := func(in []Tensor) []Tensor { return in }
	in := []Tensor{{Shape: []int{4, 1}, Data: []float64{0, 1e100, math.Inf(-1), math.NaN()}}}
	got := Differences(identity, in, []Tensor{{Shape: []int{4, 1}, Data: []float64{2, 3, 4, 5}}}, []int{0})[0].Data
	require.InDelta(t, 2, got[0], 1e-6)
	require.InDelta(t, 3, got[1], 1e-6)
	require.True(t, math.IsNaN(got[2]))
	require.True(t, math.IsNaN(got[3]))
}

// Elements at a kink or a jump have no derivative. Elsewhere the same functions have one.
func TestDifferencesAtKinks(t *testing.T) {
	each := func(f func(float64) float64) Func {
		return func(in []Tensor) []Tensor {
			out := New(in[0].Shape...)
			for i, v := range in[0].Data {
				out.Data[i] = f(v)
			}
			return []Tensor{out}
		}
	}
	sum := func(in []Tensor) []Tensor {
		total := 0.0
		for _, v := range in[0].Data {
			total += math.Abs(v)
		}
		return []Tensor{{Data: []float64{total}}}
	}
	derivative := func(f Func, x ...float64) []float64 {
		in := Tensor{Shape: []int{len(x)}, Data: x}
		u := f([]Tensor{in})[0]
		for i := range u.Data {
			u.Data[i] = 1
		}
		return Differences(f, []Tensor{in}, []Tensor{u}, []int{0})[0].Data
	}
	nan := math.NaN()
	for name, test := range map[string]struct {
		f       Func
		x, want []float64
	}{
		"relu":             {each(func(v float64) float64 { return max(v, 0) }), []float64{-2, 0, 3, 1e-4}, []float64{0, nan, 1, nan}},
		"relu of 0":        {each(func(v float64) float64 { return max(v, 0) }), []float64{0, 0}, []float64{nan, nan}},
		"abs":              {each(math.Abs), []float64{-2, 0, 3}, []float64{-1, nan, 1}},
		"floor":            {each(math.Floor), []float64{-0.5, 1, 2.5}, []float64{0, nan, 0}},
		"kink in one term": {sum, []float64{0, 1, -1, 2}, []float64{nan, 1, -1, 1}},
		"no kink":          {each(func(v float64) float64 { return v * v }), []float64{0, 1, -3}, []float64{0, 2, -6}},
		"steep":            {each(math.Exp), []float64{-30, 0, 30}, []float64{math.Exp(-30), 1, math.Exp(30)}},
		"extremum":         {each(math.Cos), []float64{0, math.Pi, 1}, []float64{0, 0, -math.Sin(1)}},
		"far from 0":       {each(math.Tanh), []float64{100, -100, 99}, []float64{0, 0, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			got := derivative(test.f, test.x...)
			for i, want := range test.want {
				if math.IsNaN(want) {
					require.True(t, math.IsNaN(got[i]), "%v", got)
					continue
				}
				require.InDelta(t, want, got[i], 1e-9*(1+math.Abs(want)))
			}
		})
	}
}
