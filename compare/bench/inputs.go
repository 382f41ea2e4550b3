package bench

import (
	"slices"

	"github.com/mlxgrad/mlxgrad/compare"
	"github.com/mlxgrad/mlxgrad/compare/internal/arrays"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// operands are the inputs and cotangents of one evaluation.
type operands struct {
	inputs, cotangents []*mlxc.Array
}

// all returns the inputs and the cotangents.
func (o operands) all() []*mlxc.Array { return slices.Concat(o.inputs, o.cotangents) }

// makeSets returns several sets of random operands of a case on the device, contiguous and evaluated.
func makeSets(op string, c Case, dtype mlxc.DType) ([]operands, error) {
	rng := compare.RNG(op, c.Name)
	normal := func(deviation float64, dtype mlxc.DType, shape []int) *mlxc.Array {
		a := mlxc.RandomNormal(mlxc.RandomKey(rng.Uint64()), dtype, shape...)
		if deviation != 1 {
			a = a.MulScalar(deviation)
		}
		return a
	}
	var data operands
	for _, in := range c.Inputs {
		if in.Kind == compare.Real || in.Kind == compare.Constant {
			deviation, given := c.Deviations[in.Name]
			if !given {
				deviation = 1
			}
			data.inputs = append(data.inputs, normal(deviation, dtype, in.Shape))
			continue
		}
		data.inputs = append(data.inputs, arrays.New(in.Values(rng, in.Shape), in.Kind.StoredDType(dtype), in.Shape))
	}
	for _, out := range c.Outputs {
		stored := out.StoredDType(dtype)
		cotangent := normal(1, stored, out.Shape)
		if len(out.Shape) == 0 {
			cotangent = mlxc.Scalar(c.scalarCotangent(dtype)).AsType(stored)
		}
		data.cotangents = append(data.cotangents, cotangent)
	}
	return manySets(data)
}

// scalarCotangent returns the cotangent of scalar outputs, which are losses.
func (c Case) scalarCotangent(dtype mlxc.DType) float32 {
	if c.LossScale == 0 || dtype.Size() != 2 {
		return 1
	}
	return float32(c.LossScale)
}

const (
	// The sets together exceed the caches, so that no evaluation finds its operands there.
	bytesOfSets = 128 << 20
	maxSets     = 16
)

// manySets returns data and further sets in other memory, all evaluated: enough to take bytesOfSets together, but at
// most maxSets. Each further set holds the negated arrays of the set before; all sets share scalars and integers.
func manySets(data operands) ([]operands, error) {
	bytes := 0
	for _, a := range data.all() {
		bytes += a.NBytes()
	}
	sets := []operands{data}
	for len(sets) < maxSets && len(sets)*bytes < bytesOfSets {
		last := sets[len(sets)-1]
		sets = append(sets, operands{inputs: negated(last.inputs), cotangents: negated(last.cotangents)})
	}
	for _, set := range sets {
		if err := mlxc.Eval(set.all()...); err != nil {
			return nil, err
		}
	}
	return sets, nil
}

// negated returns the arrays with the floating-point ones negated, except scalars.
func negated(list []*mlxc.Array) []*mlxc.Array {
	out := slices.Clone(list)
	for i, a := range list {
		if a.DType().IsFloating() && a.NDim() > 0 {
			out[i] = a.Neg()
		}
	}
	return out
}
