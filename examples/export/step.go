package main

import (
	"math"

	"github.com/mlxgrad/mlxgrad/mlxc"
	"github.com/mlxgrad/mlxgrad/mlxc/optim"
	"github.com/mlxgrad/mlxgrad/mlxc/tree"
	"github.com/mlxgrad/mlxgrad/ops"
)

// params holds a network with a normalized hidden layer.
type params struct {
	Hidden, Bias *mlxc.Array // (2, width), (width)
	Norm         *mlxc.Array // (width)
	Out          *mlxc.Array // (width, 2)
}

type (
	state = optim.Training[params, optim.AdamWState]
	batch struct {
		Points  *mlxc.Array // (n, 2)
		Classes *mlxc.Array // (n), int32
	}
	input struct {
		state
		batch
	}
	output struct {
		state
		Loss *mlxc.Array
	}
)

// operations holds the operations with kernels.
type operations struct {
	norm         func(x, weight *mlxc.Array, eps float32) *mlxc.Array
	crossEntropy func(logits, targets *mlxc.Array) *mlxc.Array // mean
}

var withKernels = operations{ops.RMSNorm, func(logits, targets *mlxc.Array) *mlxc.Array {
	return ops.CrossEntropy(logits, targets, ops.CrossEntropyConfig{})
}}

var builtIn = operations{mlxc.RMSNorm, func(logits, targets *mlxc.Array) *mlxc.Array {
	return mlxc.CrossEntropy(logits, targets).Mean()
}}

// step returns the training step: the state after an update, and the loss before it.
func (o operations) step(in input) (out output, err error) {
	loss := func(p params) *mlxc.Array {
		x := o.norm(in.Points.MatMul(p.Hidden).Add(p.Bias).Tanh(), p.Norm, 1e-5)
		return o.crossEntropy(x.MatMul(p.Out), in.Classes)
	}
	value, grads, err := tree.ValueAndGrad(loss)(in.Params)
	if err != nil {
		return out, err
	}
	out.Loss = value
	out.Params, out.Optimizer, err = optimizer.Update(in.Params, grads, in.Optimizer)
	return out, err
}

var optimizer = optim.AdamW[params]{LearningRate: optim.CosineDecay(0.05, 0, 100)}

// start returns the state before the first step.
func start() (s state, err error) {
	const width = 64
	s.Params = params{
		Hidden: mlxc.RandomNormal(mlxc.RandomKey(1), mlxc.Float32, 2, width),
		Bias:   mlxc.RandomNormal(mlxc.RandomKey(4), mlxc.Float32, width),
		Norm:   mlxc.Ones(mlxc.Float32, width),
		Out:    mlxc.RandomNormal(mlxc.RandomKey(2), mlxc.Float32, width, 2).DivScalar(math.Sqrt(width)),
	}
	s.Optimizer, err = optimizer.Init(s.Params)
	return s, err
}

// quadrants returns n points in a square. The class is whether their coordinates have the same sign.
func quadrants(n int) batch {
	points := mlxc.RandomUniform(mlxc.RandomKey(3), -1, 1, mlxc.Float32, n, 2)
	return batch{points, points.Prod(1).Greater(mlxc.Scalar[float32](0)).AsType(mlxc.Int32)}
}
