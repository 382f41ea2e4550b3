package mlxc_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/mlxc"
)

// rope computes RoPE in float64 for rows × dim with the given number of positions.
func rope(x []float32, length, dim, dims int, traditional bool, frequency func(i int) float64, scale float64,
	offset int,
) []float64 {
	out := make([]float64, len(x))
	for i, v := range x {
		out[i] = float64(v)
	}
	for row := range len(x) / dim {
		position := float64(row%length+offset) * scale
		for i := range dims / 2 {
			a, b := row*dim+i, row*dim+i+dims/2
			if traditional {
				a, b = row*dim+2*i, row*dim+2*i+1
			}
			sin, cos := math.Sincos(position * frequency(i))
			out[a], out[b] = float64(x[a])*cos-float64(x[b])*sin, float64(x[a])*sin+float64(x[b])*cos
		}
	}
	return out
}

func TestRoPE(t *testing.T) {
	const batch, heads, length, dim = 2, 3, 5, 8
	freqs := mlxc.FromSlice([]float32{1, 2, 5, 50})
	for _, c := range []mlxc.RoPEConfig{
		{},
		{Traditional: true},
		{Dims: 6, Base: 100, Scale: 0.5, Offset: 7},
		{Dims: 2, Traditional: true, Offset: 1000},
		{Freqs: freqs, Scale: 2},
	} {
		x := normal(1, batch, heads, length, dim)
		dims, base, scale := dim, 10000.0, 1.0
		if c.Dims != 0 {
			dims = c.Dims
		}
		if c.Base != 0 {
			base = float64(c.Base)
		}
		if c.Scale != 0 {
			scale = float64(c.Scale)
		}
		frequency := func(i int) float64 { return math.Pow(base, -2*float64(i)/float64(dims)) }
		if c.Freqs != nil {
			frequency = func(i int) float64 { return 1 / float64([]float32{1, 2, 5, 50}[i]) }
		}
		want := rope(floats(t, x), length, dim, dims, c.Traditional, frequency, scale, c.Offset)
		// In float32, the error of a large angle is also the error of its cosine.
		tolerance := 1e-5 + 1e-6*float64(c.Offset)
		require.InDeltaSlice(t, want, floats(t, mlxc.RoPE(x, c)), tolerance)
		three := mlxc.RoPE(x.Reshape(batch*heads, length, dim), c)
		require.InDeltaSlice(t, want, floats(t, three), tolerance)

		// The gradient of a rotation is the inverse rotation.
		dy := normal(2, batch, heads, length, dim)
		_, grads, err := mlxc.VJP(func(args []*mlxc.Array) []*mlxc.Array {
			return []*mlxc.Array{mlxc.RoPE(args[0], c)}
		}, []*mlxc.Array{x}, []*mlxc.Array{dy})
		require.NoError(t, err)
		back := func(i int) float64 { return -frequency(i) }
		require.InDeltaSlice(t, rope(floats(t, dy), length, dim, dims, c.Traditional, back, scale, c.Offset),
			floats(t, grads[0]), tolerance)
	}
}

func ExampleRoPE() {
	// Rows at the positions 1 and 2, rotated by π/3 and 2π/3.
	x := mlxc.FromSlice([]float32{1, 0, 1, 0}, 1, 2, 2)
	y := mlxc.RoPE(x, mlxc.RoPEConfig{Scale: math.Pi / 3, Offset: 1})
	v, err := mlxc.ToSlice[float32](y)
	fmt.Printf("%.2f %v\n", v, err)
	// Output: [0.50 0.87 -0.50 0.87] <nil>
}

func TestRoPEErrors(t *testing.T) {
	x := mlxc.Ones(mlxc.Float32, 1, 2, 4)
	require.Equal(t, mlxc.Float16, mlxc.RoPE(x.AsType(mlxc.Float16), mlxc.RoPEConfig{}).DType())
	for _, shape := range [][]int{{0, 2, 4}, {1, 0, 4}, {1, 2, 0, 4}} {
		empty := mlxc.RoPE(mlxc.Zeros(mlxc.Float32, shape...), mlxc.RoPEConfig{})
		require.NoError(t, mlxc.Eval(empty))
		require.Equal(t, shape, empty.Shape())
	}
	for _, c := range []struct {
		x      *mlxc.Array
		config mlxc.RoPEConfig
		want   string
	}{
		{mlxc.Ones(mlxc.Float32, 2, 4), mlxc.RoPEConfig{}, "at least 3 dimensions"},
		{mlxc.Ones(mlxc.Int32, 1, 2, 4), mlxc.RoPEConfig{}, "floating"},
		{mlxc.Ones(mlxc.Float32, 1, 2, 3), mlxc.RoPEConfig{}, "dims must be even but got 3"},
		{mlxc.Ones(mlxc.Float32, 1, 2, 0), mlxc.RoPEConfig{}, "dims must be positive but got 0"},
		{x, mlxc.RoPEConfig{Dims: 6}, "must not exceed"},
		{x, mlxc.RoPEConfig{Dims: -2}, "Dims is -2"},
		{x, mlxc.RoPEConfig{Base: -1}, "the base is -1: it must be positive"},
		{x, mlxc.RoPEConfig{Freqs: mlxc.Ones(mlxc.Float32, 3)}, "one dimensional with size 2"},
		{x, mlxc.RoPEConfig{Freqs: mlxc.InvalidArray(mlxc.ErrFreed)}, "freed"},
		{x, mlxc.RoPEConfig{Offset: 1 << 40}, "does not fit MLX's 32 bits"},
		{nil, mlxc.RoPEConfig{}, "nil"},
	} {
		require.ErrorContains(t, mlxc.RoPE(c.x, c.config).Err(), c.want)
	}
}
