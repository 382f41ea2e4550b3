package ops

import (
	"math"

	"github.com/mlxgrad/mlxgrad/mlxc"
)

// crossEntropyOfMLX is CrossEntropy composed of MLX's operations, with their gradients.
func crossEntropyOfMLX(logits, targets *mlxc.Array, cfg CrossEntropyConfig) *mlxc.Array {
	width := logits.Dim(-1)
	classes := cfg.classes(targets, width)
	zero := mlxc.Scalar[int32](0)
	counted, inside := classes.GreaterEqual(zero), classes.Less(mlxc.Scalar(int32(width)))

	s := logits.Reshape(classes.Dim(0), width).AsType(mlxc.Float32)
	// A row that is ignored may hold anything, which a gradient of zero would not undo.
	s = mlxc.Where(counted.ExpandDims(-1), s, mlxc.Scalar[float32](0))
	if c := float64(cfg.SoftCap); c > 0 {
		s = s.DivScalar(c).Tanh().MulScalar(c)
	}
	lse := s.LogSumExp(-1)
	ids := mlxc.Where(counted.LogicalAnd(inside), classes, zero).ExpandDims(-1)
	losses := lse.Sub(s.TakeAlongAxis(ids, -1).Squeeze(-1))
	if e := float64(cfg.LabelSmoothing); e > 0 {
		losses = losses.MulScalar(1 - e).Add(lse.Sub(s.Mean(-1)).MulScalar(e))
	}
	if z := float64(cfg.ZLoss); z > 0 {
		losses = losses.Add(lse.Square().MulScalar(z))
	}
	// A factor, so that the gradient is not a number either.
	factor := mlxc.Where(inside, mlxc.Scalar[float32](1), mlxc.Scalar(float32(math.NaN())))
	losses = mlxc.Where(counted, losses.Mul(factor), mlxc.Scalar[float32](0))
	if cfg.Reduction == None {
		return losses.Reshape(targets.Shape()...)
	}
	return losses.Sum().Div(cfg.divisor(classes))
}
