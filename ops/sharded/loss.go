package sharded

import (
	"math"

	"github.com/mlxgrad/mlxgrad/mlxc"
	"github.com/mlxgrad/mlxgrad/mlxc/distributed"
	"github.com/mlxgrad/mlxgrad/ops"
)

// loss is LinearCrossEntropy in one process. Arrays with a number per row have shape (rows, 1) and dtype float32.
type loss struct {
	group *distributed.Group
	first int
	cfg   ops.CrossEntropyConfig
}

// A selection is derived from the targets. Its arrays have shape (rows, 1).
type selection struct {
	counted *mlxc.Array // whether the row is not ignored
	own     *mlxc.Array // whether this process holds the target's class
	index   *mlxc.Array // the index of the target in weight, int32; any index if own is false
}

func (l loss) selects(targets *mlxc.Array, classes int) selection {
	ids := targets.Reshape(targets.Size(), 1).AsType(mlxc.Int64)
	counted := ids.GreaterEqualScalar(0)
	if i := l.cfg.IgnoreIndex; i != nil {
		counted = counted.LogicalAnd(ids.NotEqual(mlxc.Scalar(int64(*i))))
	}
	index := ids.SubScalar(l.first)
	own := index.GreaterEqualScalar(0).LogicalAnd(index.LessScalar(classes))
	return selection{counted, own, index.Clip(0, classes-1).AsType(mlxc.Int32)}
}

// rows returns hidden with shape (rows, H), and zeros in the rows that are ignored, which may hold NaN.
func (s selection) rows(hidden *mlxc.Array) *mlxc.Array {
	h := hidden.Reshape(hidden.Size()/hidden.Dim(-1), hidden.Dim(-1))
	return mlxc.Where(s.counted, h, mlxc.Zeros(h.DType()))
}

// divisor returns the divisor of the sum of the losses.
func (l loss) divisor(s selection) *mlxc.Array {
	one := mlxc.Scalar[float32](1)
	if l.cfg.Reduction != ops.ReductionMean {
		return one
	}
	return s.counted.AsType(mlxc.Float32).Sum().Maximum(one)
}

func (l loss) capped(logits *mlxc.Array) *mlxc.Array {
	if c := float64(l.cfg.SoftCap); c > 0 {
		return logits.DivScalar(c).Tanh().MulScalar(c)
	}
	return logits
}

// slope returns the derivative of capped with respect to the logits, 1−tanh² of logits/SoftCap, without cancellation.
func (l loss) slope(logits *mlxc.Array) *mlxc.Array {
	e := logits.Abs().MulScalar(-2 / float64(l.cfg.SoftCap)).Exp()
	return e.MulScalar(4).Div(e.AddScalar(1).Square())
}

// forward returns the loss, and for backward the float32 logits and, for each row over all classes, the highest capped
// logit, the sum of exponentials relative to it, and the number of classes. The sum is NaN for a target that is not a
// class. The highest logit and the sum stay separate, because their combination log(sum)+highest rounds to the spacing
// of the logits.
func (l loss) forward(args []*mlxc.Array) []*mlxc.Array {
	hidden, weight, targets := args[0], args[1], args[2]
	sel := l.selects(targets, weight.Dim(0))
	logits := sel.rows(hidden).MatMul(weight.Transpose()).AsType(mlxc.Float32)
	s := l.capped(logits)
	zero := mlxc.Scalar[float32](0)
	highest := l.group.AllMax(s.MaxKeepDims(-1))
	sums := l.group.AllSum(mlxc.Concatenate(1,
		s.Sub(highest).Exp().SumKeepDims(-1),
		mlxc.Where(sel.own, s.TakeAlongAxis(sel.index, 1), zero),
		sel.own.AsType(mlxc.Float32),
		s.SumKeepDims(-1),
		mlxc.Full(mlxc.Float32, mlxc.Scalar(float32(weight.Dim(0))), targets.Size(), 1),
	)).Split(5, 1)
	target, ranks, sum, classes := sums[1], sums[2], sums[3], sums[4]
	valid := ranks.EqualScalar(1).LogicalOr(sel.counted.LogicalNot())
	exps := sums[0].Add(mlxc.Where(valid, zero, mlxc.Scalar(float32(math.NaN()))))

	distance := highest.Sub(target)
	if e := float64(l.cfg.LabelSmoothing); e > 0 {
		distance = distance.MulScalar(1 - e).Add(highest.Sub(sum.Div(classes)).MulScalar(e))
	}
	losses := exps.Log().Add(distance)
	if z := float64(l.cfg.ZLoss); z > 0 {
		losses = losses.Add(exps.Log().Add(highest).Square().MulScalar(z))
	}
	losses = mlxc.Where(sel.counted, losses, zero)
	if l.cfg.Reduction == ops.ReductionNone {
		losses = losses.Reshape(targets.Shape()...)
	} else {
		losses = losses.Sum().Div(l.divisor(sel))
	}
	return []*mlxc.Array{losses, logits, highest, exps, classes}
}

// backward returns the gradients of hidden and weight. That of targets is zero.
func (l loss) backward(args, cotangents, outputs []*mlxc.Array) []*mlxc.Array {
	hidden, weight, targets := args[0], args[1], args[2]
	logits, highest, exps, classes := outputs[1], outputs[2], outputs[3], outputs[4]
	sel := l.selects(targets, weight.Dim(0))
	perRow := cotangents[0].AsType(mlxc.Float32).Div(l.divisor(sel))
	if l.cfg.Reduction == ops.ReductionNone {
		perRow = perRow.Reshape(targets.Size(), 1)
	}
	perRow = mlxc.Where(sel.counted, perRow, mlxc.Scalar[float32](0))

	ids := mlxc.Arange(mlxc.Int32, 0, float64(weight.Dim(0)), 1).Reshape(1, weight.Dim(0))
	hot := ids.Equal(sel.index).LogicalAnd(sel.own).AsType(mlxc.Float32)
	ds := l.capped(logits).Sub(highest).Exp().Div(exps)
	if z := float64(l.cfg.ZLoss); z > 0 {
		ds = ds.Mul(exps.Log().Add(highest).MulScalar(2 * z).AddScalar(1))
	}
	e := float64(l.cfg.LabelSmoothing)
	ds = ds.Sub(hot.MulScalar(1 - e))
	if e > 0 {
		ds = ds.Sub(mlxc.Scalar(float32(e)).Div(classes))
	}
	dlogits := ds.Mul(perRow)
	if l.cfg.SoftCap > 0 {
		dlogits = dlogits.Mul(l.slope(logits))
	}

	dtype := hidden.DType()
	factors := dtype
	if dtype == mlxc.Float16 {
		factors = mlxc.Float32
	}
	dlogits = dlogits.AsType(factors)
	dhidden := l.group.AllSum(dlogits.MatMul(weight.AsType(factors)).AsType(mlxc.Float32))
	dweight := dlogits.Transpose().MatMul(sel.rows(hidden).AsType(factors))
	return []*mlxc.Array{
		dhidden.Reshape(hidden.Shape()...).AsType(dtype), dweight.AsType(dtype), mlxc.ZerosLike(targets),
	}
}
