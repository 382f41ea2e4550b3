package valuetest

import (
	"math"
	"math/bits"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/mlxc"
)

// follows requires draws to follow the distribution function cdf, by the Kolmogorov–Smirnov test. The largest distance
// between cdf and the empirical distribution of n draws exceeds 2/√n by chance in 1 of 1,500 samples. The seeds are
// fixed.
func follows(t testing.TB, draws *mlxc.Array, cdf func(x float64) float64) {
	t.Helper()
	v := wide(t, draws)
	slices.Sort(v)
	n := float64(len(v))
	require.Greater(t, n, 1000.0)
	for i, x := range v {
		f := cdf(x)
		require.LessOrEqual(t, math.Abs(f-float64(i)/n), 2/math.Sqrt(n), "below %g", x)
		require.LessOrEqual(t, math.Abs(f-float64(i+1)/n), 2/math.Sqrt(n), "up to %g", x)
	}
}

// gauss is the standard normal distribution function.
func gauss(x float64) float64 { return 0.5 * (1 + math.Erf(x/math.Sqrt2)) }

// uniform is the distribution function of the uniform distribution on [0, 1].
func uniform(x float64) float64 { return min(max(x, 0), 1) }

// threefry returns the output of Threefry-2x32 with 20 rounds (Salmon et al., "Parallel random numbers: as easy as 1,
// 2, 3", 2011).
func threefry(key, counter [2]uint32) [2]uint32 {
	ks := [3]uint32{key[0], key[1], 0x1bd11bda ^ key[0] ^ key[1]}
	x := [2]uint32{counter[0] + ks[0], counter[1] + ks[1]}
	rotations := [8]int{13, 15, 26, 6, 17, 29, 16, 24}
	for round := range 20 {
		x[0] += x[1]
		x[1] = bits.RotateLeft32(x[1], rotations[round%8]) ^ x[0]
		if round%4 == 3 {
			i := uint32(round/4 + 1)
			x[0] += ks[i%3]
			x[1] += ks[(i+1)%3] + i
		}
	}
	return x
}

// repeats requires equal draws for equal keys, different draws for different keys, and draws without a key that depend
// on RandomSeed.
func repeats(t *testing.T, draw func(key *mlxc.Array) *mlxc.Array) {
	t.Helper()
	values := func(key *mlxc.Array) []float64 { return wide(t, draw(key)) }
	one := values(mlxc.RandomKey(1))
	require.Equal(t, one, values(mlxc.RandomKey(1)))
	require.NotEqual(t, one, values(mlxc.RandomKey(2)))
	mlxc.RandomSeed(3)
	first, second := values(nil), values(nil)
	mlxc.RandomSeed(3)
	require.Equal(t, first, values(nil))
	require.Equal(t, second, values(nil))
	require.NotEqual(t, first, second)
}

func init() {
	const n = 10000
	key := func() *mlxc.Array { return mlxc.RandomKey(7) }
	value("mlx_random_key", func(t *testing.T) {
		require.Equal(t, []uint32{1 << 3, 5}, read[uint32](t, mlxc.RandomKey(1<<35+5)))
	})
	value("mlx_random_split_num", func(t *testing.T) {
		keys := mlxc.RandomSplit(key(), 3)
		require.Len(t, keys, 3)
		seen := map[[2]uint32]bool{}
		for _, k := range append(keys, key()) {
			seen[[2]uint32(read[uint32](t, k))] = true
		}
		require.Len(t, seen, 4)
		require.Equal(t, read[uint32](t, keys[1]), read[uint32](t, mlxc.RandomSplit(key(), 3)[1]))
		// The keys of a split are random bits.
		require.Equal(t, read[uint32](t, mlxc.RandomBits(key(), mlxc.Uint32, 3, 2))[2:4], read[uint32](t, keys[1]))
	})
	value("mlx_random_bits", func(t *testing.T) {
		// The first value is a known answer of Threefry's authors. MLX draws n words with n/2 calls: call i has the
		// counter (i, i+n/2) and returns words i and i+n/2.
		require.Equal(t, [2]uint32{0x6b200159, 0x99ba4efe}, threefry([2]uint32{}, [2]uint32{}))
		b := read[uint32](t, mlxc.RandomBits(mlxc.FromSlice([]uint32{11, 12}), mlxc.Uint32, 6))
		for i := range 3 {
			require.Equal(t, threefry([2]uint32{11, 12}, [2]uint32{uint32(i), uint32(i + 3)}), [2]uint32{b[i], b[i+3]})
		}
		for d, top := range map[mlxc.DType]float64{mlxc.Uint8: 1 << 8, mlxc.Uint16: 1 << 16, mlxc.Uint32: 1 << 32} {
			b := mlxc.RandomBits(key(), d, n/10, 10)
			require.Equal(t, d, b.DType())
			require.Equal(t, []int{n / 10, 10}, b.Shape())
			follows(t, b.AsType(mlxc.Float64).AddScalar(0.5).DivScalar(top), uniform)
		}
		repeats(t, func(key *mlxc.Array) *mlxc.Array { return mlxc.RandomBits(key, mlxc.Uint16, 5) })
	})
	value("mlx_random_uniform", func(t *testing.T) {
		for _, d := range []mlxc.DType{mlxc.Float32, mlxc.Float16, mlxc.BFloat16} {
			u := mlxc.RandomUniform(key(), -2, 3, d, n)
			require.Equal(t, d, u.DType())
			follows(t, u.AsType(mlxc.Float64).AddScalar(2).DivScalar(5), uniform)
			v := wide(t, u)
			require.GreaterOrEqual(t, slices.Min(v), -2.0)
			if d == mlxc.Float32 {
				require.Less(t, slices.Max(v), 3.0)
			}
		}
		low, high := mlxc.FromSlice([]float32{0, 10}), mlxc.FromSlice([]float32{1, 30})
		b := mlxc.RandomUniformBroadcast(key(), low, high, mlxc.Float32, n, 2)
		follows(t, b.Sub(low).Div(high.Sub(low)).Take(mlxc.Scalar[int32](0), 1), uniform)
		follows(t, b.Sub(low).Div(high.Sub(low)).Take(mlxc.Scalar[int32](1), 1), uniform)
		repeats(t, func(key *mlxc.Array) *mlxc.Array { return mlxc.RandomUniform(key, 0, 1, mlxc.Float32, 5) })
	})
	value("mlx_random_normal", func(t *testing.T) {
		for _, d := range []mlxc.DType{mlxc.Float32, mlxc.Float64, mlxc.Float16, mlxc.BFloat16} {
			x := mlxc.RandomNormal(key(), d, n)
			require.Equal(t, d, x.DType())
			follows(t, x, gauss)
		}
		z := mlxc.RandomNormal(key(), mlxc.Complex64, n)
		near(t, []float64{1}, z.Abs().Square().Mean(), 0.05)
		repeats(t, func(key *mlxc.Array) *mlxc.Array { return mlxc.RandomNormal(key, mlxc.Float32, 5) })
	})
	value("mlx_random_normal_broadcast", func(t *testing.T) {
		mean, deviation := mlxc.FromSlice([]float32{-5, 100}), mlxc.FromSlice([]float32{2, 0.5})
		x := mlxc.RandomNormalBroadcast(key(), mean, deviation, mlxc.Float32, n, 2)
		for i := range 2 {
			follows(t, x.Sub(mean).Div(deviation).Take(mlxc.Scalar(int32(i)), 1), gauss)
		}
		follows(t, mlxc.RandomNormalBroadcast(key(), nil, nil, mlxc.Float32, n), gauss)
		repeats(t,
			func(key *mlxc.Array) *mlxc.Array { return mlxc.RandomNormalBroadcast(key, mean, nil, mlxc.Float32, 2) })
	})
	value("mlx_random_multivariate_normal", func(t *testing.T) {
		mean, covariance := mlxc.FromSlice([]float32{1, -2}), mlxc.FromSlice([]float32{4, 1.5, 1.5, 1}, 2, 2)
		x := mlxc.RandomMultivariateNormal(key(), mean, covariance, n)
		require.Equal(t, []int{n, 2}, x.Shape())
		centred := x.Sub(mean)
		near(t, []float64{4, 1.5, 1.5, 1}, centred.Transpose().MatMul(centred).DivScalar(n), 0.1)
		follows(t, centred.MatMul(mlxc.FromSlice([]float32{0.5, 0})), gauss)
		follows(t, centred.MatMul(mlxc.FromSlice([]float32{0, 1})), gauss)
		repeats(t, func(key *mlxc.Array) *mlxc.Array { return mlxc.RandomMultivariateNormal(key, mean, covariance, 3) })
	})
	value("mlx_random_truncated_normal", func(t *testing.T) {
		low, high := mlxc.Scalar[float32](-0.5), mlxc.Scalar[float32](2)
		for _, d := range []mlxc.DType{mlxc.Float32, mlxc.Float16} {
			x := mlxc.RandomTruncatedNormal(key(), low, high, d, n)
			follows(t, x,
				func(x float64) float64 { return uniform((gauss(x) - gauss(-0.5)) / (gauss(2) - gauss(-0.5))) })
			v := wide(t, x)
			require.GreaterOrEqual(t, slices.Min(v), -0.5)
			require.LessOrEqual(t, slices.Max(v), 2.0)
		}
		repeats(t,
			func(key *mlxc.Array) *mlxc.Array { return mlxc.RandomTruncatedNormal(key, low, high, mlxc.Float32, 5) })
	})
	value("mlx_random_laplace", func(t *testing.T) {
		follows(t, mlxc.RandomLaplace(key(), 3, 2, mlxc.Float32, n), func(x float64) float64 {
			if x < 3 {
				return math.Exp((x-3)/2) / 2
			}
			return 1 - math.Exp(-(x-3)/2)/2
		})
		repeats(t, func(key *mlxc.Array) *mlxc.Array { return mlxc.RandomLaplace(key, 0, 1, mlxc.Float16, 5) })
	})
	value("mlx_random_gumbel", func(t *testing.T) {
		follows(t, mlxc.RandomGumbel(key(), mlxc.Float32, n),
			func(x float64) float64 { return math.Exp(-math.Exp(-x)) })
		repeats(t, func(key *mlxc.Array) *mlxc.Array { return mlxc.RandomGumbel(key, mlxc.BFloat16, 5) })
	})
	value("mlx_random_randint", func(t *testing.T) {
		for _, d := range []mlxc.DType{mlxc.Int8, mlxc.Uint8, mlxc.Int32, mlxc.Int64, mlxc.Uint32} {
			x := mlxc.RandomInt(key(), 3, 8, d, n)
			require.Equal(t, d, x.DType())
			count := map[float64]int{}
			for _, v := range wide(t, x) {
				count[v]++
			}
			require.Len(t, count, 5, "%v", count)
			for v := 3.0; v < 8; v++ {
				require.InDelta(t, n/5, count[v], 4*math.Sqrt(n*0.2*0.8), "of %g", v)
			}
		}
		low, high := mlxc.FromSlice([]int32{-4, 10, 5}), mlxc.FromSlice([]int32{-3, 12, 5})
		v := wide(t, mlxc.RandomIntBroadcast(key(), low, high, mlxc.Int32, 100, 3).Transpose())
		require.Equal(t, -4.0, slices.Min(v[:100]))
		require.Equal(t, -4.0, slices.Max(v[:100]))
		require.Equal(t, 10.0, slices.Min(v[100:200]))
		require.Equal(t, 11.0, slices.Max(v[100:200]))
		require.Equal(t, 5.0, slices.Max(v[200:]))
		repeats(t, func(key *mlxc.Array) *mlxc.Array { return mlxc.RandomInt(key, 0, 1000, mlxc.Int32, 5) })
	})
	value("mlx_random_bernoulli", func(t *testing.T) {
		p := mlxc.FromSlice([]float32{0, 0.25, 1})
		b := mlxc.RandomBernoulli(key(), p, n, 3)
		require.Equal(t, mlxc.Bool, b.DType())
		near(t, []float64{0, 0.25, 1}, b.AsType(mlxc.Float32).Mean(0), 0.02)
		require.Equal(t, []bool{false, true},
			read[bool](t, mlxc.RandomBernoulli(key(), mlxc.FromSlice([]float32{0, 1}))))
		repeats(t,
			func(key *mlxc.Array) *mlxc.Array { return mlxc.RandomBernoulli(key, mlxc.Scalar[float32](0.5), 64) })
	})
	// logits returns two rows over three classes. The first has the probabilities 0.2, 0.5 and 0.3. In the second, the
	// last class is certain.
	logits := func() *mlxc.Array {
		inf := math.Inf(-1)
		return mlxc.FromSlice([]float64{math.Log(0.2), math.Log(0.5), math.Log(0.3), inf, inf, 0}, 2,
			3).AsType(mlxc.Float32)
	}
	shares := func(t *testing.T, classes *mlxc.Array) {
		t.Helper()
		require.Equal(t, mlxc.Uint32, classes.DType())
		v := wide(t, classes)
		for c, p := range []float64{0.2, 0.5, 0.3} {
			count := 0
			for _, x := range v {
				if x == float64(c) {
					count++
				}
			}
			require.InDelta(t, p, float64(count)/float64(len(v)), 0.02, "class %d", c)
		}
	}
	certain := func(t *testing.T, classes *mlxc.Array) {
		t.Helper()
		near(t, []float64{2, 2}, mlxc.Stack(0, classes.Min(), classes.Max()), 0)
	}
	value("mlx_random_categorical", func(t *testing.T) {
		both := mlxc.RandomCategorical(key(), logits().ExpandDims(0).BroadcastTo(n, 2, 3), -1)
		require.Equal(t, []int{n, 2}, both.Shape())
		shares(t, both.Take(mlxc.Scalar[int32](0), 1))
		certain(t, both.Take(mlxc.Scalar[int32](1), 1))
		near(t, []float64{2}, mlxc.RandomCategorical(key(), logits().Transpose(), 0).Take(mlxc.Scalar[int32](1), 0), 0)
		repeats(t, func(key *mlxc.Array) *mlxc.Array {
			return mlxc.RandomCategorical(key, mlxc.Zeros(mlxc.Float32, 4, 1000), 1)
		})
	})
	value("mlx_random_categorical_num_samples", func(t *testing.T) {
		both := mlxc.RandomCategoricalN(key(), logits(), -1, n)
		require.Equal(t, []int{2, n}, both.Shape())
		shares(t, both.Take(mlxc.Scalar[int32](0), 0))
		certain(t, both.Take(mlxc.Scalar[int32](1), 0))
		repeats(t, func(key *mlxc.Array) *mlxc.Array {
			return mlxc.RandomCategoricalN(key, mlxc.Zeros(mlxc.Float32, 1000), 0, 4)
		})
	})
	value("mlx_random_categorical_shape", func(t *testing.T) {
		both := mlxc.RandomCategoricalShape(key(), logits(), 1, n, 2)
		require.Equal(t, []int{n, 2}, both.Shape())
		shares(t, both.Take(mlxc.Scalar[int32](0), 1))
		certain(t, both.Take(mlxc.Scalar[int32](1), 1))
		repeats(t, func(key *mlxc.Array) *mlxc.Array {
			return mlxc.RandomCategoricalShape(key, mlxc.Zeros(mlxc.Float32, 1000), 0, 2, 2)
		})
	})
	value("mlx_random_permutation", func(t *testing.T) {
		a := mlxc.Arange(mlxc.Int32, 0, 60, 1).Reshape(20, 3)
		p := mlxc.RandomPermutation(key(), a, 0)
		require.NotEqual(t, read[int32](t, a), read[int32](t, p))
		require.Equal(t, read[int32](t, a), read[int32](t, p.Sort(0)))
		rows := wide(t, p)
		for i := range 20 { // only whole rows move
			require.Equal(t, rows[3*i]+1, rows[3*i+1])
			require.Equal(t, rows[3*i]+2, rows[3*i+2])
		}
		q := mlxc.RandomPermutation(key(), a.Transpose(), -1)
		require.Equal(t, read[int32](t, p), read[int32](t, q.Transpose()))
		require.Equal(t, []int{0, 3}, mlxc.RandomPermutation(key(), mlxc.Zeros(mlxc.Float32, 0, 3), 0).Shape())
		repeats(t, func(key *mlxc.Array) *mlxc.Array { return mlxc.RandomPermutation(key, a, 0) })
	})
	value("mlx_random_permutation_arange", func(t *testing.T) {
		// All six orders of three numbers are equally likely.
		count := map[[3]uint32]int{}
		for i := range 600 {
			count[[3]uint32(read[uint32](t, mlxc.RandomPermutationArange(mlxc.RandomKey(uint64(i)), 3)))]++
		}
		require.Len(t, count, 6)
		for order, c := range count {
			require.InDelta(t, 100, c, 45, "%v", order)
		}
		require.Equal(t, []uint32{}, read[uint32](t, mlxc.RandomPermutationArange(key(), 0)))
		repeats(t, func(key *mlxc.Array) *mlxc.Array { return mlxc.RandomPermutationArange(key, 50) })
	})
}

// Each draw without a key uses a new key, also if several goroutines draw.
func TestKeysOfTheSequenceDiffer(t *testing.T) {
	mlxc.RandomSeed(1)
	var wg sync.WaitGroup
	var mu sync.Mutex
	seen := map[[2]uint32]bool{}
	for range 8 {
		wg.Go(func() {
			for range 50 {
				v, err := mlxc.ToSlice[uint32](mlxc.RandomBits(nil, mlxc.Uint32, 2))
				if err != nil {
					continue
				}
				mu.Lock()
				seen[[2]uint32(v)] = true
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	require.Len(t, seen, 400)
}

// If a transform runs a function again for its gradient, the second run repeats the draws without a key.
func TestKeysOfTheSequenceWhereAFunctionRunsAgain(t *testing.T) {
	const n = 64
	mask := func(x *mlxc.Array) *mlxc.Array { return mlxc.RandomNormal(nil, mlxc.Float32, n).Mul(x) }
	twice := func(a arrays) arrays { return arrays{mask(mask(a[0]))} }
	nested := func(a arrays) arrays { return arrays{mask(mlxc.Checkpoint(twice)(a)[0])} }
	x := mlxc.Ones(mlxc.Float32, n)
	for name, f := range map[string]mlxc.Func{
		"Checkpoint":     mlxc.Checkpoint(twice),
		"inside another": mlxc.Checkpoint(nested),
		"inside":         nested,
		"CustomFunction": mlxc.CustomFunction(twice, mlxc.CustomRules{}),
		"compiled": func(a arrays) arrays {
			out, err := mlxc.Compile(mlxc.Checkpoint(twice)).Call(a...)
			require.NoError(t, err)
			return out
		},
	} {
		values, grads, err := mlxc.VJP(f, arrays{x}, arrays{x})
		require.NoError(t, err, name)
		// x is 1 and f multiplies it by the draws, so the gradient equals the value.
		require.InDeltaSlice(t, floats(t, values[0]), floats(t, grads[0]), 1e-4, name)
		again, _, err := mlxc.VJP(f, arrays{x}, arrays{x})
		require.NoError(t, err, name)
		require.NotEqual(t, floats(t, values[0]), floats(t, again[0]), name)
	}
	f := mlxc.CustomFunction(twice, mlxc.CustomRules{})
	values, tangents, err := mlxc.JVP(f, arrays{x}, arrays{x})
	require.NoError(t, err)
	require.InDeltaSlice(t, floats(t, values[0]), floats(t, tangents[0]), 1e-4)
}

// Integers of wide or distant ranges are uniform: every remainder is as frequent as the others.
func TestRandomIntOfWideRanges(t *testing.T) {
	const n = 20000
	mlxc.RandomSeed(5)
	for _, c := range []struct {
		low, high int
		d         mlxc.DType
	}{
		{1 << 40, 1<<40 + 10, mlxc.Int64},
		{0, 1 << 40, mlxc.Int64},
		{0, math.MaxInt32, mlxc.Int32},
		{16777210, 16777220, mlxc.Int32},
		{-(1 << 40), -(1 << 40) + 10, mlxc.Int64},
		{math.MinInt, math.MaxInt, mlxc.Int64},
		{0, math.MaxInt, mlxc.Uint64},
		{0, 3 << 61, mlxc.Int64},
		{100, 110, mlxc.Int64},
	} {
		bounds := []*mlxc.Array{mlxc.Scalar(int64(c.low)), mlxc.Scalar(int64(c.high))}
		for _, x := range []*mlxc.Array{
			mlxc.RandomInt(nil, c.low, c.high, c.d, n),
			mlxc.RandomIntBroadcast(nil, bounds[0], bounds[1], c.d, n),
		} {
			require.Equal(t, c.d, x.DType())
			var counts [10]int
			upper := 0
			for _, v := range read[int64](t, x.AsType(mlxc.Int64)) {
				require.GreaterOrEqual(t, int(v), c.low)
				require.Less(t, int(v), c.high)
				offset := uint64(v) - uint64(c.low)
				counts[offset%10]++
				if offset >= (uint64(c.high)-uint64(c.low))/2 {
					upper++
				}
			}
			for _, count := range counts {
				require.InDelta(t, n/10, count, 300, "%v", c) // 7 standard deviations
			}
			require.InDelta(t, n/2, upper, 500, "%v", c)
		}
	}
	// Bounds that differ between elements, and a range that is empty.
	low := mlxc.FromSlice([]int64{1 << 40, 5, 7})
	high := mlxc.FromSlice([]int64{1<<40 + 2, 3, 8})
	for _, row := range mlxc.RandomIntBroadcast(nil, low, high, mlxc.Int64, 50, 3).Rows() {
		v := read[int64](t, row)
		require.Contains(t, []int64{1 << 40, 1<<40 + 1}, v[0])
		require.Equal(t, []int64{5, 7}, v[1:])
	}
	require.Equal(t, []uint64{math.MaxUint64 - 1}, read[uint64](t, mlxc.RandomIntBroadcast(nil,
		mlxc.Scalar[uint64](math.MaxUint64-1), mlxc.Scalar[uint64](math.MaxUint64), mlxc.Uint64, 1)))
}

// The numbers are below high even if the sum of low and MLX's number rounds to it.
func TestRandomUniformIsBelowHigh(t *testing.T) {
	for _, d := range []mlxc.DType{mlxc.Float32, mlxc.Float16} {
		x := mlxc.RandomUniform(mlxc.RandomKey(1), 1000, 1001, d, 200000)
		require.Less(t, wide(t, x.Max())[0], 1001.0, d)
		require.InDelta(t, 0.5, wide(t, x.AsType(mlxc.Float32).SubScalar(1000).Mean())[0], 0.26, d)
	}
	require.Equal(t, []float64{1000, 1000}, wide(t, mlxc.RandomUniform(nil, 1000, 1001, mlxc.BFloat16, 2)))
	require.Equal(t, []float64{1000, 1000}, wide(t, mlxc.RandomUniform(nil, 1000, 1000, mlxc.Float32, 2)))
}
