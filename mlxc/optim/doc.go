// Package optim updates parameters along their gradients: SGD, AdamW, gradient clipping and learning-rate schedules.
//
// # Training
//
// A Trainer holds the parameters and the optimizer's state. Each Step computes the gradient of a loss on a batch,
// updates the parameters and the state, and frees the arrays that it replaces:
//
//	trainer, err := optim.NewTrainer(params, optim.AdamW[Params]{
//		LearningRate: optim.Linear(0, 1e-3, 100).Then(100, optim.CosineDecay(1e-3, 1e-5, 900)),
//	}, func(p Params, b Batch) *mlxc.Array { return p.predict(b.X).Sub(b.Y).Square().Mean() })
//	...
//	for batch := range batches {
//		loss, err := trainer.Step(batch)
//		...
//	}
//
// # Optimizers
//
// An optimizer is a plain struct of settings. Its Init makes the state for parameters, which are a tree of arrays (see
// package tree). Its Update is a pure function of parameters, gradients and state; it returns the new parameters and
// the new state. The state is a tree of arrays, too, and includes the number of updates. So an update can be part of a
// compiled function, and the state can be saved to a file like the parameters. A custom step is
//
//	step := tree.Compile(func(t optim.Training[Params, optim.AdamWState]) (optim.Training[Params, optim.AdamWState], error) {
//		_, grads, err := tree.ValueAndGrad(loss)(t.Params)
//		if err != nil {
//			return t, err
//		}
//		t.Params, t.Optimizer, err = optimizer.Update(t.Params, grads, t.Optimizer)
//		return t, err
//	})
//
// Parameters are float32, float16, bfloat16 or float64. For 16-bit parameters, the state and the arithmetic are
// float32: the state holds a float32 copy of each, the master. Updates change the master, and the parameter is its
// rounded value (Micikevicius et al., "Mixed Precision Training", 2018, section 3.1). Updates too small for 16 bits are
// thus not lost. If other code changes a parameter, make a new state with Init.
//
// Update builds a graph and computes nothing. It does not free its arguments. Any number of goroutines may use an
// optimizer.
package optim
