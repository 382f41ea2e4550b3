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

func TestDifferencesOfExtremes(t *testing.T) {
	identity := func(in []Tensor) []Tensor { return in }
	in := []Tensor{{Shape: []int{4, 1}, Data: []float64{0, 1e100, math.Inf(-1), math.NaN()}}}
	got := Differences(identity, in, []Tensor{{Shape: []int{4, 1}, Data: []float64{2, 3, 4, 5}}}, []int{0})[0].Data
	require.InDelta(t, 2, got[0], 1e-6)
	require.InDelta(t, 3, got[1], 1e-6)
	require.True(t, math.IsNaN(got[2]))
	require.True(t, math.IsNaN(got[3]))
}
