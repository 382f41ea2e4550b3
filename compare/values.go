package compare

import (
	"math"
	"math/rand/v2"

	"github.com/mlxgrad/mlxgrad/compare/oracle"
)

// Normal draws from a normal distribution with mean 0 and the given deviation.
func Normal(deviation float64) Values {
	// Beyond six deviations lies one value in a thousand million. Cut there, 1e4 stays inside float16.
	const cut = 6
	return func(rng *rand.Rand, shape []int) []float64 {
		out := make([]float64, oracle.Size(shape))
		for i := range out {
			out[i] = deviation * max(-cut, min(cut, rng.NormFloat64()))
		}
		return out
	}
}

// Equal gives every element of a row the same normal value, so that differences from the row's mean
// vanish and sums of products with it do not.
func Equal(rng *rand.Rand, shape []int) []float64 {
	return eachRow(shape, func(row []float64) {
		v := rng.NormFloat64()
		for i := range row {
			row[i] = v
		}
	})
}

// EitherSign draws from [−1½, −½] and [½, 1½] evenly.
func EitherSign(rng *rand.Rand, shape []int) []float64 {
	out := make([]float64, oracle.Size(shape))
	for i := range out {
		out[i] = math.Copysign(0.5+rng.Float64(), rng.Float64()-0.5)
	}
	return out
}

// around draws from size ± 10 %, with either sign.
func around(size float64) Values {
	return func(rng *rand.Rand, shape []int) []float64 {
		out := make([]float64, oracle.Size(shape))
		for i := range out {
			out[i] = math.Copysign(size*(0.9+0.2*rng.Float64()), rng.Float64()-0.5)
		}
		return out
	}
}

// sided is around with one sign for each row, so that products of rows do not cancel.
func sided(size float64) Values {
	return func(rng *rand.Rand, shape []int) []float64 {
		values := around(size)(rng, shape)
		return eachRow(shape, func(row []float64) {
			for i := range row {
				row[i] = math.Copysign(values[i], values[0])
			}
			values = values[len(row):]
		})
	}
}

// times multiplies values by a factor.
func times(values Values, factor float64) Values {
	return func(rng *rand.Rand, shape []int) []float64 {
		out := values(rng, shape)
		for i := range out {
			out[i] *= factor
		}
		return out
	}
}

// Far adds 100 to normal values, so that what varies in a row is small against the row.
func Far(rng *rand.Rand, shape []int) []float64 {
	out := Normal(1)(rng, shape)
	for i := range out {
		out[i] += 100
	}
	return out
}

// Spread scales each row of normal values by a power of ten from 1e-3 to 1e3, so that sums over rows
// mix sizes.
func Spread(rng *rand.Rand, shape []int) []float64 {
	normal := Normal(1)
	return eachRow(shape, func(row []float64) {
		scale := math.Pow(10, 6*rng.Float64()-3)
		for i, v := range normal(rng, []int{len(row)}) {
			row[i] = scale * v
		}
	})
}

// Spike makes every row zero but for one normal element.
func Spike(rng *rand.Rand, shape []int) []float64 {
	return eachRow(shape, func(row []float64) {
		if len(row) > 0 {
			row[rng.IntN(len(row))] = rng.NormFloat64()
		}
	})
}

// Zero makes every element zero.
func Zero(_ *rand.Rand, shape []int) []float64 {
	return make([]float64, oracle.Size(shape))
}

// With puts v at one place of normal values.
func With(v float64) Values {
	return func(rng *rand.Rand, shape []int) []float64 {
		out := Normal(1)(rng, shape)
		out[rng.IntN(len(out))] = v
		return out
	}
}

// eachRow makes a tensor of zeros and lets fill set its rows along the last axis.
func eachRow(shape []int, fill func(row []float64)) []float64 {
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
