package ops

import (
	"math"

	"github.com/mlxgrad/mlxgrad/mlxc"
)

// crossEntropyMLX returns CrossEntropy composed of MLX operations, with MLX's gradients.
func crossEntropyMLX(logits, targets *mlxc.Array, cfg CrossEntropyConfig) *mlxc.Array {
	width := logits.Dim(-1)
	classes := cfg.classes(targets, width)
	zero := mlxc.Scalar[int32](0)
	counted, inRange := classes.GreaterEqual(zero), classes.Less(mlxc.Scalar(int32(width)))

	s := logits.Reshape(classes.Dim(0), width).AsType(mlxc.Float32)
	// An ignored row may hold NaN or infinity, and their product with a zero gradient would be NaN.
	s = mlxc.Where(counted.ExpandDims(-1), s, mlxc.Scalar[float32](0))
	if c := float64(cfg.SoftCap); c > 0 {
		s = s.DivScalar(c).Tanh().MulScalar(c)
	}
	lse := s.LogSumExp(-1)
	ids := mlxc.Where(counted.LogicalAnd(inRange), classes, zero).ExpandDims(-1)
	losses := lse.Sub(s.TakeAlongAxis(ids, -1).Squeeze(-1))
	if e := float64(cfg.LabelSmoothing); e > 0 {
		losses = losses.MulScalar(1 - e).Add(lse.Sub(s.Mean(-1)).MulScalar(e))
	}
	if z := float64(cfg.ZLoss); z > 0 {
		losses = losses.Add(lse.Square().MulScalar(z))
	}
	// The factor NaN makes the gradient NaN too. A Where that selects NaN would make only the loss NaN.
	validity := mlxc.Where(inRange, mlxc.Scalar[float32](1), mlxc.Scalar(float32(math.NaN())))
	losses = mlxc.Where(counted, losses.Mul(validity), mlxc.Scalar[float32](0))
	if cfg.Reduction == ReductionNone {
		return losses.Reshape(targets.Shape()...)
	}
	return losses.Sum().Div(cfg.divisor(classes))
}
