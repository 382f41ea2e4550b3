package gomlx

import (
	"fmt"
	"slices"

	"github.com/gomlx/gomlx/backends"
	"github.com/gomlx/gomlx/pkg/core/dtypes"
	"github.com/gomlx/gomlx/pkg/core/shapes"

	"github.com/mlxgrad/mlxgrad/mlxc"
)

// FFT transforms the last axes, one for each length.
func (f *function) FFT(x backends.Value, kind backends.FFTType, lengths []int) (backends.Value, error) {
	return f.unaryTo(backends.OpTypeFFT, x, func(x *mlxc.Array) *mlxc.Array {
		axes := allAxes(x.NDim())
		c := mlxc.FFTConfig{Axes: axes[x.NDim()-len(lengths):], N: lengths}
		switch kind {
		case backends.FFTForward:
			return x.FFTN(c)
		case backends.FFTInverse:
			return x.IFFTN(c)
		case backends.FFTForwardReal:
			return x.RFFTN(c)
		}
		return x.IRFFTN(c)
	}, func(s shapes.Shape) (shapes.Shape, error) {
		last := len(lengths) - 1
		if last < 0 || last >= s.Rank() {
			return s, fmt.Errorf("there are %d lengths; the operand %v needs 1 to %d", len(lengths), s, s.Rank())
		}
		from, to := dtypes.Complex64, dtypes.Complex64
		inputs, outputs := slices.Clone(lengths), slices.Clone(lengths)
		switch kind {
		case backends.FFTForward, backends.FFTInverse:
		case backends.FFTForwardReal:
			from, outputs[last] = dtypes.Float32, lengths[last]/2+1
		case backends.FFTInverseReal:
			to, inputs[last] = dtypes.Float32, lengths[last]/2+1
		default:
			return s, fmt.Errorf("the transform %v is unknown", kind)
		}
		first := s.Rank() - len(lengths)
		if !slices.Equal(s.Dimensions[first:], inputs) {
			return s, fmt.Errorf("the operand is %v; its last axes must have the sizes %v", s, inputs)
		}
		if s.DType != from {
			return s, fmt.Errorf("the dtype is %v; MLX's transform %v takes %v: %w", s.DType, kind, from,
				backends.ErrNotImplemented)
		}
		return shapes.Shape{DType: to, Dimensions: slices.Concat(s.Dimensions[:first], outputs)}, nil
	})
}
