package suite

import (
	"math"
	"math/rand/v2"

	"github.com/mlxgrad/mlxgrad/compare"
	"github.com/mlxgrad/mlxgrad/compare/oracle"
)

// around draws from size ± 10 %, with either sign.
func around(size float64) compare.Values {
	return func(rng *rand.Rand, shape []int) []float64 {
		out := make([]float64, oracle.Size(shape))
		for i := range out {
			out[i] = math.Copysign(size*(0.9+0.2*rng.Float64()), rng.Float64()-0.5)
		}
		return out
	}
}

// sided is around with one sign for each row, so that products of rows do not cancel.
func sided(size float64) compare.Values {
	return func(rng *rand.Rand, shape []int) []float64 {
		values := around(size)(rng, shape)
		return compare.EachRow(shape, func(row []float64) {
			for i := range row {
				row[i] = math.Copysign(values[i], values[0])
			}
			values = values[len(row):]
		})
	}
}

// times multiplies values by a factor.
func times(values compare.Values, factor float64) compare.Values {
	return func(rng *rand.Rand, shape []int) []float64 {
		out := values(rng, shape)
		for i := range out {
			out[i] *= factor
		}
		return out
	}
}
