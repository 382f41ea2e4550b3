package compare

import (
	"math"
	"math/rand/v2"

	"github.com/mlxgrad/mlxgrad/compare/oracle"
)

// Normal draws from a normal distribution with mean 0 and the given standard deviation, clamped to six deviations. This
// affects two values in 10⁹ and keeps Normal(1e4) within float16.
func Normal(deviation float64) Values {
	const cut = 6
	return func(rng *rand.Rand, shape []int) []float64 {
		out := make([]float64, oracle.Size(shape))
		for i := range out {
			out[i] = deviation * max(-cut, min(cut, rng.NormFloat64()))
		}
		return out
	}
}

// EqualRows gives all elements of a row the same normal value: differences from the row's mean are 0, but sums of products
// are not.
func EqualRows(rng *rand.Rand, shape []int) []float64 {
	return EachRow(shape, func(row []float64) {
		v := rng.NormFloat64()
		for i := range row {
			row[i] = v
		}
	})
}

// EitherSign draws uniformly from [−1½, −½] and [½, 1½].
func EitherSign(rng *rand.Rand, shape []int) []float64 {
	out := make([]float64, oracle.Size(shape))
	for i := range out {
		out[i] = math.Copysign(0.5+rng.Float64(), rng.Float64()-0.5)
	}
	return out
}

// Uniform draws uniformly from low to high.
func Uniform(low, high float64) Values {
	return func(rng *rand.Rand, shape []int) []float64 {
		out := make([]float64, oracle.Size(shape))
		for i := range out {
			out[i] = low + (high-low)*rng.Float64()
		}
		return out
	}
}

// Far adds 100 to normal values: the variation in a row is small compared with its elements.
func Far(rng *rand.Rand, shape []int) []float64 {
	out := Normal(1)(rng, shape)
	for i := range out {
		out[i] += 100
	}
	return out
}

// Spread scales each row of normal values by a random factor from 1e-3 to 1e3, so that sums over rows mix magnitudes.
func Spread(rng *rand.Rand, shape []int) []float64 {
	normal := Normal(1)
	return EachRow(shape, func(row []float64) {
		scale := math.Pow(10, 6*rng.Float64()-3)
		for i, v := range normal(rng, []int{len(row)}) {
			row[i] = scale * v
		}
	})
}

// Spike has one normal element in each row and zeros elsewhere.
func Spike(rng *rand.Rand, shape []int) []float64 {
	return EachRow(shape, func(row []float64) {
		if len(row) > 0 {
			row[rng.IntN(len(row))] = rng.NormFloat64()
		}
	})
}

// Zeros makes every element zero.
func Zeros(_ *rand.Rand, shape []int) []float64 {
	return make([]float64, oracle.Size(shape))
}

// NormalExcept draws normal values and replaces one of them, at a random position, by v. It panics for a shape without
// elements.
func NormalExcept(v float64) Values {
	return func(rng *rand.Rand, shape []int) []float64 {
		out := Normal(1)(rng, shape)
		out[rng.IntN(len(out))] = v
		return out
	}
}

// EachRow returns the elements of a tensor of a shape. It starts with zeros and calls fill for each row along the last
// axis, in order.
func EachRow(shape []int, fill func(row []float64)) []float64 {
	out := make([]float64, oracle.Size(shape))
	width := 1
	if len(shape) > 0 {
		width = shape[len(shape)-1]
	}
	for start := 0; start < len(out); start += width {
		fill(out[start : start+width])
	}
	return out
}
