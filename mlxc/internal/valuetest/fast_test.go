package valuetest

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/internal/skip"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// tolerances maps dtypes to the allowed difference from results in float64.
var tolerances = map[mlxc.DType]float64{mlxc.Float32: 2e-5, mlxc.Float16: 1e-2, mlxc.BFloat16: 6e-2}

// rotated returns RoPE of x by definition. shape is (batch, heads, length, dim). offset returns the position of the
// first row of a batch entry, and frequency the angle per position of pair i.
func rotated(x []float64, shape [4]int, dims int, traditional bool, scale float64, offset func(batch int) int,
	frequency func(i int) float64,
) []float64 {
	out := append([]float64(nil), x...)
	length, dim := shape[2], shape[3]
	for row := range len(x) / dim {
		batch, position := row/(shape[1]*length), row%length
		for i := range dims / 2 {
			p, q := i, i+dims/2
			if traditional {
				p, q = 2*i, 2*i+1
			}
			sin, cos := math.Sincos(scale * float64(position+offset(batch)) * frequency(i))
			a, b := x[row*dim+p], x[row*dim+q]
			out[row*dim+p], out[row*dim+q] = a*cos-b*sin, a*sin+b*cos
		}
	}
	return out
}

func init() {
	shape := [4]int{2, 3, 5, 8}
	power := func(base float64, dims int) func(i int) float64 {
		return func(i int) float64 { return math.Pow(base, -2*float64(i)/float64(dims)) }
	}
	at := func(offset int) func(int) int { return func(int) int { return offset } }
	value("mlx_fast_rope", func(t *testing.T) {
		for d, tolerance := range tolerances {
			x := normal(1, shape[:]...).AsType(d)
			v := wide(t, x)
			for name, c := range map[string]struct {
				config mlxc.RoPEConfig
				want   []float64
			}{
				"plain":       {mlxc.RoPEConfig{}, rotated(v, shape, 8, false, 1, at(0), power(10000, 8))},
				"traditional": {mlxc.RoPEConfig{Traditional: true}, rotated(v, shape, 8, true, 1, at(0), power(10000, 8))},
				"two":         {mlxc.RoPEConfig{Dims: 2, Traditional: true}, rotated(v, shape, 2, true, 1, at(0), power(10000, 2))},
				"all of it": {
					mlxc.RoPEConfig{Dims: 6, Base: 100, Scale: 0.5, Offset: 7},
					rotated(v, shape, 6, false, 0.5, at(7), power(100, 6)),
				},
				"frequencies": {
					mlxc.RoPEConfig{Dims: 4, Freqs: mlxc.FromSlice([]float32{2, 5}), Offset: 1},
					rotated(v, shape, 4, false, 1, at(1), func(i int) float64 { return []float64{0.5, 0.2}[i] }),
				},
			} {
				t.Run(d.String()+" "+name, func(t *testing.T) {
					require.Equal(t, d, mlxc.RoPE(x, c.config).DType())
					near(t, c.want, mlxc.RoPE(x, c.config), tolerance)
					near(t, c.want, mlxc.RoPE(columnMajor(x), c.config), tolerance)
					near(t, c.want, mlxc.RoPE(strided(x), c.config), tolerance)
				})
			}
		}
		require.Equal(t, []float32{}, floats(t, mlxc.RoPE(mlxc.Zeros(mlxc.Float32, 2, 0, 4), mlxc.RoPEConfig{})))
	})
	value("mlx_fast_rope_dynamic", func(t *testing.T) {
		x := normal(2, shape[:]...)
		v := wide(t, x)
		c := mlxc.RoPEConfig{Dims: 6, Base: 100, Scale: 0.5}
		near(t, rotated(v, shape, 6, false, 0.5, at(7), power(100, 6)), mlxc.RoPEDynamic(x, mlxc.Scalar[int32](7), c), 2e-5)
		each := rotated(v, shape, 6, false, 0.5, func(batch int) int { return []int{3, 11}[batch] }, power(100, 6))
		near(t, each, mlxc.RoPEDynamic(columnMajor(x), mlxc.FromSlice([]int32{3, 11}), c), 2e-5)
		near(t, each, mlxc.RoPEDynamic(x, mlxc.FromSlice([]int64{3, 11}), c), 2e-5)
		// One trace serves every offset.
		traces := 0
		f := mlxc.Compile(func(a arrays) arrays { traces++; return arrays{mlxc.RoPEDynamic(a[0], a[1], c)} })
		for _, offset := range []int{0, 4} {
			out, err := f.Call(x, mlxc.Scalar(int32(offset)))
			require.NoError(t, err)
			near(t, rotated(v, shape, 6, false, 0.5, at(offset), power(100, 6)), out[0], 2e-5)
		}
		require.Equal(t, 1, traces)
	})
	value("mlx_fast_rms_norm", func(t *testing.T) {
		for d, tolerance := range tolerances {
			x, w := normal(3, 2, 3, 5).AsType(d), normal(4, 5).AsType(d)
			v, g := wide(t, x), wide(t, w)
			want, plain := make([]float64, len(v)), make([]float64, len(v))
			for row := 0; row < len(v); row += 5 {
				sum := 0.0
				for _, a := range v[row : row+5] {
					sum += a * a
				}
				for i := range 5 {
					plain[row+i] = v[row+i] / math.Sqrt(sum/5+0.1)
					want[row+i] = plain[row+i] * g[i]
				}
			}
			near(t, want, mlxc.RMSNorm(x, w, 0.1), tolerance)
			near(t, want, mlxc.RMSNorm(columnMajor(x), strided(w), 0.1), tolerance)
			near(t, plain, mlxc.RMSNorm(strided(x), nil, 0.1), tolerance)
		}
	})
	value("mlx_fast_layer_norm", func(t *testing.T) {
		for d, tolerance := range tolerances {
			x, w, b := normal(5, 2, 3, 5).AsType(d), normal(6, 5).AsType(d), normal(7, 5).AsType(d)
			v, g, h := wide(t, x), wide(t, w), wide(t, b)
			want, plain := make([]float64, len(v)), make([]float64, len(v))
			for row := 0; row < len(v); row += 5 {
				mean, variance := 0.0, 0.0
				for _, a := range v[row : row+5] {
					mean += a / 5
				}
				for _, a := range v[row : row+5] {
					variance += (a - mean) * (a - mean) / 5
				}
				for i := range 5 {
					plain[row+i] = (v[row+i] - mean) / math.Sqrt(variance+0.1)
					want[row+i] = plain[row+i]*g[i] + h[i]
				}
			}
			near(t, want, mlxc.LayerNorm(x, w, b, 0.1), tolerance)
			near(t, want, mlxc.LayerNorm(columnMajor(x), strided(w), strided(b), 0.1), tolerance)
			near(t, plain, mlxc.LayerNorm(x, nil, nil, 0.1), tolerance)
		}
	})
	value("mlx_fast_cross_entropy", func(t *testing.T) {
		for d, tolerance := range tolerances {
			x := normal(8, 2, 3, 7).AsType(d)
			v, targets := wide(t, x), []int32{0, 6, 3, 3, 1, 5}
			want := make([]float64, len(targets))
			for i, target := range targets {
				sum := 0.0
				for _, a := range v[7*i : 7*i+7] {
					sum += math.Exp(a)
				}
				want[i] = math.Log(sum) - v[7*i+int(target)]
			}
			ids := mlxc.FromSlice(targets, 2, 3)
			got := mlxc.CrossEntropy(x, ids)
			require.Equal(t, mlxc.Float32, got.DType())
			near(t, want, got, tolerance)
			near(t, want, mlxc.CrossEntropy(columnMajor(x), columnMajor(ids).AsType(mlxc.Uint8)), tolerance)
		}
	})
	value("mlx_fast_scaled_dot_product_attention", func(t *testing.T) {
		const batch, heads, kvHeads, queries, keys, dim, valueDim = 2, 4, 2, 3, 5, 8, 6
		for d, tolerance := range tolerances {
			q := normal(9, batch, heads, queries, dim).AsType(d)
			k := normal(10, batch, kvHeads, keys, dim).AsType(d)
			v := normal(11, batch, kvHeads, keys, valueDim).AsType(d)
			f32 := func(a *mlxc.Array) []float32 { return floats(t, a.AsType(mlxc.Float32)) }
			causal := func(_, query, key int) float64 {
				if key > query+keys-queries {
					return math.Inf(-1)
				}
				return 0
			}
			none := func(_, _, _ int) float64 { return 0 }
			for _, mask := range []bool{false, true} {
				hide := none
				if mask {
					hide = causal
				}
				want := attention(f32(q), f32(k), f32(v), batch, heads, kvHeads, queries, keys, dim, valueDim, 0.3, hide, nil)
				c := mlxc.AttentionConfig{Scale: 0.3, Causal: mask}
				near(t, want, mlxc.ScaledDotProductAttention(q, k, v, c), tolerance)
				near(t, want, mlxc.ScaledDotProductAttention(columnMajor(q), strided(k), columnMajor(v), c), tolerance)
			}
		}
	})
}

// The error for the gradient of a custom kernel ends with advice.
func TestKernelsHaveNoGradient(t *testing.T) {
	kernel, err := mlxc.NewMetalKernel(mlxc.MetalKernelSource{
		Name: "twice", Inputs: []string{"x"}, Outputs: []string{"y"}, Body: "y[thread_position_in_grid.x] = 2 * x[thread_position_in_grid.x];",
	})
	require.NoError(t, err)
	launch := mlxc.KernelLaunch{
		Outputs: []mlxc.Output{{Shape: []int{3}, DType: mlxc.Float32}}, Grid: [3]int{3, 1, 1}, Threadgroup: [3]int{1, 1, 1},
	}
	x := mlxc.Ones(mlxc.Float32, 3)
	_, err = mlxc.Trace(func(a arrays) (grads arrays) {
		mlxc.WithPlaceholderGPU(func() {
			_, grads, err = mlxc.VJP(func(b arrays) arrays {
				y, err := kernel.Apply(launch, b...)
				require.NoError(t, err)
				return y
			}, a, a)
		})
		if err != nil {
			return arrays{mlxc.InvalidArray(err)}
		}
		return grads
	}, arrays{x})
	require.ErrorContains(t, err, "CustomKernel. (a custom kernel has only the gradient that CustomFunction or CustomVJP defines")
	require.Equal(t, []float32{2}, floats(t, mlxc.Scalar[float32](1).AddScalar(1)), "MLX works after the error")
}

// Without a GPU, NewCUDAKernel returns an error.
func TestKernelsWithoutAGPU(t *testing.T) {
	if mlxc.GPU.Available() {
		skip.Platform(t, "requires a machine without a GPU")
	}
	_, err := mlxc.NewCUDAKernel(mlxc.CUDAKernelSource{Name: "k", Outputs: []string{"o"}, Body: "o[0] = 1;"})
	require.ErrorContains(t, err, "k: [cuda_kernel] No CUDA back-end")
	_, err = mlxc.NewCUDAKernel(mlxc.CUDAKernelSource{Name: "k", Body: "o[0] = 1;"})
	require.ErrorContains(t, err, "a CUDA kernel needs at least one output")
	_, err = mlxc.NewCUDAKernel(mlxc.CUDAKernelSource{Name: "k", Outputs: []string{"o"}, SharedMemory: -1})
	require.ErrorContains(t, err, "SharedMemory is -1 bytes")
}
