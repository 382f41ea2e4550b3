package valuetest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/internal/testdevice"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// grid holds the elements and the shape of an array: (batch, three spatial axes, channels). Convolutions over fewer
// axes use spatial axes of size 1.
type grid struct {
	shape [5]int
	v     []float64
}

func newGrid(shape [5]int) grid {
	n := 1
	for _, k := range shape {
		n *= k
	}
	return grid{shape, make([]float64, n)}
}

func (g grid) at(n, x, y, z, c int) *float64 {
	s := g.shape
	return &g.v[(((n*s[1]+x)*s[2]+y)*s[3]+z)*s[4]+c]
}

// gridOf reads a and inserts axes of size 1 for missing spatial axes.
func gridOf(t testing.TB, a *mlxc.Array) grid {
	t.Helper()
	shape := a.Shape()
	for len(shape) < 5 {
		shape = append(shape[:len(shape)-1], 1, shape[len(shape)-1])
	}
	return grid{[5]int(shape), wide(t, a)}
}

// convolution holds the parameters of a convolution for the three spatial axes.
type convolution struct {
	stride, low, high, dilation, inputDilation [3]int
	groups                                     int
	flip                                       bool
}

// entries returns a parameter for each of the three spatial axes. A list of one element applies to the first dims axes.
// The other axes, and all axes if the list is empty, have the value otherwise.
func entries(list []int, dims, otherwise int) (out [3]int) {
	for i := range out {
		switch {
		case i >= dims || len(list) == 0:
			out[i] = otherwise
		case len(list) == 1:
			out[i] = list[0]
		default:
			out[i] = list[i]
		}
	}
	return out
}

// correlate returns the convolution of x with w by definition: each output element is a sum over the kernel's elements.
func correlate(x, w grid, p convolution) grid {
	out := [5]int{x.shape[0], 0, 0, 0, w.shape[0]}
	for i := range 3 {
		room := (x.shape[i+1]-1)*p.inputDilation[i] + 1 + p.low[i] + p.high[i]
		out[i+1] = (room-(w.shape[i+1]-1)*p.dilation[i]-1)/p.stride[i] + 1
	}
	y := newGrid(out)
	channels, results := w.shape[4], w.shape[0]/p.groups
	// from returns the input index along axis i for an output index and a kernel index. It reports false for padding.
	from := func(i, place, k int) (int, bool) {
		if p.flip {
			k = w.shape[i+1] - 1 - k
		}
		at := place*p.stride[i] + k*p.dilation[i] - p.low[i]
		return at / p.inputDilation[i], at >= 0 && at%p.inputDilation[i] == 0 && at/p.inputDilation[i] < x.shape[i+1]
	}
	for n := range out[0] {
		for a := range out[1] {
			for b := range out[2] {
				for c := range out[3] {
					for o := range out[4] {
						for i := range w.shape[1] {
							for j := range w.shape[2] {
								for k := range w.shape[3] {
									xa, in1 := from(0, a, i)
									xb, in2 := from(1, b, j)
									xc, in3 := from(2, c, k)
									for q := range channels {
										if in1 && in2 && in3 {
											*y.at(n, a, b, c, o) += *x.at(n, xa, xb, xc,
												o/results*channels+q) * *w.at(o, i, j, k, q)
										}
									}
								}
							}
						}
					}
				}
			}
		}
	}
	return y
}

// convolved runs f for the dtypes that MLX supports in convolutions.
func convolved(t *testing.T, f func(t *testing.T, d mlxc.DType)) {
	t.Helper()
	floating(t, func(t *testing.T, d mlxc.DType) {
		if d != mlxc.Float64 {
			f(t, d)
		}
	})
}

// requireGrid requires a to have the shape and elements of want.
func requireGrid(t testing.TB, want grid, a *mlxc.Array) {
	t.Helper()
	require.NoError(t, a.Err())
	got := gridOf(t, a)
	require.Equal(t, want.shape, got.shape)
	require.Equal(t, want.v, got.v)
}

func init() {
	value("mlx_conv_general", func(t *testing.T) {
		convs := []func(input, weight *mlxc.Array, c mlxc.ConvConfig) *mlxc.Array{mlxc.Conv1D, mlxc.Conv2D, mlxc.Conv3D}
		inputs := [][]int{{2, 9, 4}, {2, 7, 6, 4}, {2, 5, 6, 6, 4}}
		weights := [][]int{{6, 3, 4}, {6, 3, 2, 4}, {6, 2, 3, 2, 4}}
		for i, f := range convs {
			dims := i + 1
			for name, c := range map[string]mlxc.ConvConfig{
				"plain":   {},
				"stride":  {Stride: []int{2}},
				"padding": {Padding: []int{1}, Stride: []int{3}},
				"dilated": {Dilation: []int{2}, Padding: []int{2}},
				"each": {
					Stride: []int{1, 2, 3}[:dims], Padding: []int{2, 0, 1}[:dims],
					Dilation: []int{1, 2, 1}[:dims],
				},
				"groups": {Groups: 2, Padding: []int{1}},
			} {
				if c.Groups > 1 && dims == 3 {
					continue // MLX supports groups for one and two spatial axes only
				}
				t.Run(name, func(t *testing.T) {
					shape := append([]int(nil), weights[i]...)
					shape[len(shape)-1] /= max(c.Groups, 1)
					x, w := matrices(uint64(20+i), inputs[i]...), matrices(uint64(30+i), shape...)
					want := correlate(gridOf(t, x), gridOf(t, w), convolution{
						entries(c.Stride, dims, 1), entries(c.Padding, dims, 0), entries(c.Padding, dims, 0),
						entries(c.Dilation, dims, 1), entries(nil, 3, 1), max(c.Groups, 1), false,
					})
					convolved(t, func(t *testing.T, d mlxc.DType) {
						requireGrid(t, want, f(x.AsType(d), w.AsType(d), c))
						requireGrid(t, want, f(columnMajor(x).AsType(d), strided(w.AsType(d)), c))
					})
				})
			}
		}
		t.Run("general", func(t *testing.T) {
			x, w := matrices(40, 2, 5, 4, 3), matrices(41, 2, 3, 2, 3)
			c := mlxc.ConvGeneralConfig{
				Stride: []int{2, 1}, PaddingLow: []int{0, 2}, PaddingHigh: []int{3, 1}, Dilation: []int{1, 2},
				InputDilation: []int{3, 2}, Flip: true,
			}
			requireGrid(t, correlate(gridOf(t, x), gridOf(t, w), convolution{
				entries(c.Stride, 2, 1), entries(c.PaddingLow, 2, 0), entries(c.PaddingHigh, 2, 0), entries(c.Dilation,
					2, 1),
				entries(c.InputDilation, 2, 1), 1, true,
			}), mlxc.ConvGeneral(x.AsType(mlxc.Float32), w.AsType(mlxc.Float32), c))
		})
	})
}

func TestConvTranspose(t *testing.T) {
	testdevice.CPUOnly(t, "compares with float64 in Go, with tolerances for MLX's CPU backend")
	transposed := func(dims int,
		f func(input, weight *mlxc.Array, c mlxc.ConvTransposeConfig) *mlxc.Array,
	) func(t *testing.T) {
		return func(t *testing.T) {
			input, weight := []int{2, 4, 3, 5}[:dims+1], []int{4, 3, 2, 3}[:dims+1]
			for name, c := range map[string]mlxc.ConvTransposeConfig{
				"plain":   {},
				"stride":  {Stride: []int{2}},
				"padding": {Padding: []int{1}, Stride: []int{3}},
				"output":  {OutputPadding: []int{1}, Stride: []int{2}},
				"dilated": {Dilation: []int{2}},
				"each": {
					Stride: []int{1, 2, 3}[:dims], Padding: []int{1, 0, 1}[:dims],
					Dilation: []int{1, 2, 1}[:dims],
				},
			} {
				t.Run(name, func(t *testing.T) {
					x, w := matrices(50, append(input[:len(input):len(input)], 3)...), matrices(51,
						append(weight[:len(weight):len(weight)], 3)...)
					// A transposed convolution is the correlation of the stretched and padded
					// input with the flipped kernel.
					p := convolution{
						stride: [3]int{1, 1, 1}, dilation: entries(c.Dilation, dims, 1),
						inputDilation: entries(c.Stride, dims, 1), groups: 1, flip: true,
					}
					padding, more := entries(c.Padding, dims, 0), entries(c.OutputPadding, dims, 0)
					for i := range dims {
						reach := p.dilation[i] * (weight[i+1] - 1)
						p.low[i], p.high[i] = reach-padding[i], reach-padding[i]+more[i]
					}
					convolved(t, func(t *testing.T, d mlxc.DType) {
						requireGrid(t, correlate(gridOf(t, x), gridOf(t, w), p),
							f(x.AsType(d), strided(w.AsType(d)), c))
					})
				})
			}
		}
	}
	t.Run("one axis", transposed(1, mlxc.ConvTranspose1D))
	t.Run("two axes", transposed(2, mlxc.ConvTranspose2D))
	t.Run("three axes", transposed(3, mlxc.ConvTranspose3D))
}

// Both elements of each kernel fall into the padding, one on each side of the input, so the result and the gradients
// are zeros. MLX's own convolution writes to positions of the padding, megabytes beyond the result's memory.
func TestConvolutionsWithMorePaddingThanResult(t *testing.T) {
	const padding = 1 << 20
	c := mlxc.ConvConfig{Padding: []int{padding, 0, 0}, Dilation: []int{2 * padding, 1, 1}}
	for i, f := range []func(input, weight *mlxc.Array, c mlxc.ConvConfig) *mlxc.Array{
		mlxc.Conv1D, mlxc.Conv2D,
		mlxc.Conv3D,
	} {
		x, w := []int{1, 1, 1, 1}[:i+2], []int{1, 2, 1, 1}[:i+2]
		at := mlxc.ConvConfig{Padding: c.Padding[:i+1], Dilation: c.Dilation[:i+1]}
		sum := func(in []*mlxc.Array) []*mlxc.Array { return []*mlxc.Array{f(in[0], in[1], at).Sum()} }
		value, grads, err := mlxc.ValueAndGrad(sum, 0,
			1)([]*mlxc.Array{mlxc.Ones(mlxc.Float32, append(x, 1)...), mlxc.Ones(mlxc.Float32, append(w, 1)...)})
		require.NoError(t, err)
		require.NoError(t, mlxc.Eval(append(grads, value...)...))
		require.Equal(t, []float32{0}, floats(t, value[0]))
		require.Equal(t, []float32{0}, floats(t, grads[0]))
		require.Equal(t, []float32{0, 0}, floats(t, grads[1]))
	}
}

// The gradients of a convolution with any padding of a dilated input are those of a sum of products, and have the shapes of
// the operands. All elements and cotangents are 1, so an element's gradient is the number of its products.
func TestGradientsOfPaddedDilatedConvolutions(t *testing.T) {
	for n := 1; n < 6; n++ {
		for padding := range 6 {
			for apart := 1; apart < 4; apart++ {
				for k := 1; k < 4; k++ {
					if (n-1)*apart+1+2*padding < k {
						continue
					}
					dx, dw := productCounts(n, k, padding, apart)
					c := mlxc.ConvGeneralConfig{
						PaddingLow: []int{padding}, PaddingHigh: []int{padding}, InputDilation: []int{apart},
					}
					sum := func(in []*mlxc.Array) []*mlxc.Array {
						return []*mlxc.Array{mlxc.ConvGeneral(in[0], in[1], c).Sum()}
					}
					_, grads, err := mlxc.ValueAndGrad(sum, 0, 1)([]*mlxc.Array{
						mlxc.Ones(mlxc.Float32, 1, n, 1), mlxc.Ones(mlxc.Float32, 1, k, 1),
					})
					require.NoError(t, err)
					require.Equal(t, dx, floats(t, grads[0]), "%d elements, %+v, %d", n, c, k)
					require.Equal(t, dw, floats(t, grads[1]), "%d elements, %+v, %d", n, c, k)
				}
			}
		}
	}
}

// productCounts returns the number of products that each of n padded elements, `apart` apart, and each of k elements of the
// kernel has in a convolution.
func productCounts(n, k, padding, apart int) (dx, dw []float32) {
	dx, dw = make([]float32, n), make([]float32, k)
	for result := range (n-1)*apart + 1 + 2*padding - k + 1 {
		for j := range k {
			if at := result + j - padding; at >= 0 && at%apart == 0 && at/apart < n {
				dx[at/apart]++
				dw[j]++
			}
		}
	}
	return dx, dw
}

func TestConvolutionsByHand(t *testing.T) {
	x, w := mlxc.FromSlice([]float32{1, 10}, 1, 2, 1), mlxc.FromSlice([]float32{1, 2, 3}, 1, 3, 1)
	require.Equal(t, []float32{1, 2, 13, 20, 30},
		floats(t, mlxc.ConvTranspose1D(x, w, mlxc.ConvTransposeConfig{Stride: []int{2}})))
	require.Equal(t, []float32{2, 13, 20},
		floats(t, mlxc.ConvTranspose1D(x, w, mlxc.ConvTransposeConfig{Stride: []int{2}, Padding: []int{1}})))
	x = mlxc.FromSlice([]float32{1, 10, 100}, 1, 3, 1)
	require.Equal(t, []float32{321}, floats(t, mlxc.Conv1D(x, w, mlxc.ConvConfig{})))
	require.Equal(t, []float32{123}, floats(t, mlxc.ConvGeneral(x, w, mlxc.ConvGeneralConfig{Flip: true})))
}
