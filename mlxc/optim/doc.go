// Package optim has what moves parameters along their gradients: SGD, AdamW, clipping
// and schedules of learning rates.
//
// An optimiser is a plain description. Its Init makes the state for parameters, which
// are a tree of arrays (see package tree); its Update is a pure function from
// parameters, gradients and state to new parameters and a new state. The state is a
// tree of arrays too, the number of updates made so far among them. So an update
// can be part of a compiled function, and the state be saved in a file like the
// parameters:
//
//	type training struct {
//		Params Params
//		State  optim.AdamWState
//	}
//
//	optimiser := optim.AdamW[Params]{LearningRate: optim.Linear(0, 1e-3, 100).Then(100, optim.CosineDecay(1e-3, 1e-5, 900))}
//	step := tree.Compile(func(t training) (training, error) {
//		_, grads, err := tree.ValueAndGrad(loss)(t.Params)
//		if err != nil {
//			return training{}, err
//		}
//		t.Params, t.State, err = optimiser.Update(t.Params, grads, t.State)
//		return t, err
//	})
//
// Parameters are float32, float16, bfloat16 or float64. What an optimiser keeps of those
// of 16 bits is float32, and so is its arithmetic: the state has a float32 copy of
// each, the master, that is updated in its place and of which the parameter is the
// rounded value (Micikevicius et al., "Mixed Precision Training", 2018, section 3.1). An
// update that is too small for 16 bits is so not lost. A parameter that is changed by
// other means needs a new state.
//
// Updates build graphs and compute nothing. They do not free what they are given, and
// may be used by any number of goroutines.
package optim
