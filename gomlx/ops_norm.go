package gomlx

import (
	"fmt"
	"slices"

	"github.com/gomlx/gomlx/backends"
	"github.com/gomlx/gomlx/pkg/core/shapes"

	"github.com/mlxgrad/mlxgrad/mlxc"
)

// batchNorm holds the geometry of a batch norm: statistics are over all axes but the feature axis.
type batchNorm struct {
	axis    int
	epsilon float32
}

// check returns an error unless x has the feature axis and the other shapes are vectors of its size.
func (n batchNorm) check(x shapes.Shape, vectors ...shapes.Shape) error {
	if !x.DType.IsFloat() {
		return fmt.Errorf("the dtype is %v; it must be floating-point", x.DType)
	}
	if n.axis < 0 || n.axis >= x.Rank() {
		return fmt.Errorf("the feature axis is %d; it must be an axis of %v", n.axis, x)
	}
	want := shapes.Shape{DType: x.DType, Dimensions: []int{x.Dimensions[n.axis]}}
	for _, v := range vectors {
		if !v.Equal(want) {
			return fmt.Errorf("scales, offsets, means, and variances must be %v; one is %v", want, v)
		}
	}
	return nil
}

// along returns a vector in a shape that broadcasts along the feature axis of x.
func (n batchNorm) along(x, v *mlxc.Array) *mlxc.Array {
	shape := onesShape(x.NDim())
	shape[n.axis] = x.Dim(n.axis)
	return v.Reshape(shape...)
}

// others returns the axes of x without the feature axis.
func (n batchNorm) others(x *mlxc.Array) []int {
	return slices.Delete(allAxes(x.NDim()), n.axis, n.axis+1)
}

// mean returns the mean of a product over all axes but the feature axis.
func (n batchNorm) mean(x *mlxc.Array) *mlxc.Array {
	if axes := n.others(x); len(axes) > 0 {
		return x.Mean(axes...)
	}
	return x
}

// normalized returns (x−mean)/√(variance+ε).
func (n batchNorm) normalized(x, mean, variance *mlxc.Array) *mlxc.Array {
	return x.Sub(n.along(x, mean)).Mul(n.along(x, n.rsqrt(variance)))
}

func (n batchNorm) rsqrt(variance *mlxc.Array) *mlxc.Array {
	return variance.AddScalar(n.epsilon).Rsqrt()
}

// BatchNormForInference normalizes with a given mean and variance.
func (f *function) BatchNormForInference(
	operand, scale, offset, mean, variance backends.Value, epsilon float32, featureAxis int,
) (backends.Value, error) {
	n := batchNorm{featureAxis, epsilon}
	return f.add1(backends.OpTypeBatchNormForInference, []backends.Value{operand, scale, offset, mean, variance},
		func(in []shapes.Shape) (shapes.Shape, func([]*mlxc.Array) *mlxc.Array, error) {
			return in[0], func(in []*mlxc.Array) *mlxc.Array {
				x := in[0]
				return n.normalized(x, in[3], in[4]).Mul(n.along(x, in[1])).Add(n.along(x, in[2]))
			}, n.check(in[0], in[1:]...)
		})
}

// BatchNormForTraining normalizes with the mean and the variance of the batch, and returns them.
func (f *function) BatchNormForTraining(
	operand, scale, offset backends.Value, epsilon float32, featureAxis int,
) (normalized, batchMean, batchVariance backends.Value, err error) {
	n := batchNorm{featureAxis, epsilon}
	return three(f.add(backends.OpTypeBatchNormForTraining, []backends.Value{operand, scale, offset},
		func(in []shapes.Shape) ([]shapes.Shape, runFunc, error) {
			return []shapes.Shape{in[0], in[1], in[1]}, func(in []*mlxc.Array) ([]*mlxc.Array, error) {
				x := in[0]
				mean := n.mean(x)
				variance := n.mean(x.Sub(n.along(x, mean)).Square())
				y := n.normalized(x, mean, variance).Mul(n.along(x, in[1])).Add(n.along(x, in[2]))
				return []*mlxc.Array{y, mean, variance}, nil
			}, n.check(in[0], in[1:]...)
		}))
}

// BatchNormGradient returns the gradients of BatchNormForTraining's first result.
func (f *function) BatchNormGradient(
	operand, scale, mean, variance, gradOutput backends.Value, epsilon float32, featureAxis int,
) (gradOperand, gradScale, gradOffset backends.Value, err error) {
	n := batchNorm{featureAxis, epsilon}
	return three(f.add(backends.OpTypeBatchNormGradient, []backends.Value{operand, scale, mean, variance, gradOutput},
		func(in []shapes.Shape) ([]shapes.Shape, runFunc, error) {
			err := n.check(in[0], in[1:4]...)
			if err == nil && !in[4].Equal(in[0]) {
				err = fmt.Errorf("the gradient of the output is %v; it must be %v", in[4], in[0])
			}
			return []shapes.Shape{in[0], in[1], in[1]}, func(in []*mlxc.Array) ([]*mlxc.Array, error) {
				x, dy := in[0], in[4]
				normalized := n.normalized(x, in[2], in[3])
				meanOffset, meanScale := n.mean(dy), n.mean(dy.Mul(normalized))
				dx := dy.Sub(n.along(x, meanOffset)).Sub(normalized.Mul(n.along(x, meanScale)))
				dx = dx.Mul(n.along(x, n.rsqrt(in[3]).Mul(in[1])))
				count := x.Size() / max(x.Dim(n.axis), 1)
				return []*mlxc.Array{dx, meanScale.MulScalar(float64(count)), meanOffset.MulScalar(float64(count))}, nil
			}, err
		}))
}

// three returns the three results of a step one by one.
func three(results []backends.Value, err error) (a, b, c backends.Value, _ error) {
	if err != nil {
		return nil, nil, nil, err
	}
	return results[0], results[1], results[2], nil
}
