package optim_test

import (
	"fmt"

	"github.com/mlxgrad/mlxgrad/mlxc"
	"github.com/mlxgrad/mlxgrad/mlxc/optim"
	"github.com/mlxgrad/mlxgrad/mlxc/tree"
)

// Minimizes (w−3)².
func ExampleSGD() {
	loss := tree.ValueAndGrad(func(w *mlxc.Array) *mlxc.Array { return w.SubScalar(3).Square() })
	optimizer := optim.SGD[*mlxc.Array]{LearningRate: optim.Constant(0.25)}
	w := mlxc.Scalar[float32](7)
	state, err := optimizer.Init(w)
	for range 3 {
		if err != nil {
			break
		}
		var gradient *mlxc.Array
		if _, gradient, err = loss(w); err == nil {
			w, state, err = optimizer.Update(w, gradient, state)
		}
		fmt.Println(w)
	}
	fmt.Println(err)
	// Output:
	// array(5, dtype=float32)
	// array(4, dtype=float32)
	// array(3.5, dtype=float32)
	// <nil>
}

func ExampleAdamW() {
	type training struct {
		W     *mlxc.Array
		State optim.AdamWState
	}
	optimizer := optim.AdamW[*mlxc.Array]{LearningRate: optim.CosineDecay(0.3, 0, 200)}
	loss := func(w *mlxc.Array) *mlxc.Array { return w.SubScalar(3).Square() }
	step := tree.Compile(func(t training) (training, error) {
		_, gradient, err := tree.ValueAndGrad(loss)(t.W)
		if err != nil {
			return t, err
		}
		t.W, t.State, err = optimizer.Update(t.W, gradient, t.State)
		return t, err
	})
	w := mlxc.Scalar[float32](7)
	state, err := optimizer.Init(w)
	t := training{w, state}
	for i := 0; i < 200 && err == nil; i++ {
		t, err = step.Call(t)
	}
	if err != nil {
		fmt.Println(err)
		return
	}
	found, err := mlxc.Item[float32](t.W)
	fmt.Printf("%.2f after %v %v\n", found, t.State.Step, err)
	// Output: 3.00 after array(200, dtype=int32) <nil>
}

func ExampleSchedule() {
	rate := optim.Linear(0, 1, 4).Then(4, optim.CosineDecay(1, 0, 4))
	for step := range int32(9) {
		r, err := mlxc.Item[float32](rate(mlxc.Scalar(step)))
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("%.2f ", r)
	}
	// Output: 0.00 0.25 0.50 0.75 1.00 0.85 0.50 0.15 0.00
}

func ExampleClipByGlobalNorm() {
	grads := []*mlxc.Array{mlxc.FromSlice([]float32{6}), mlxc.FromSlice([]float32{0, 8})}
	clipped, norm, err := optim.ClipByGlobalNorm(grads, 5)
	fmt.Println(clipped[0], clipped[1], norm, err)
	// Output: array([3], dtype=float32) array([0, 4], dtype=float32) array(10, dtype=float32) <nil>
}

func ExampleSGDState() {
	optimizer := optim.SGD[*mlxc.Array]{LearningRate: optim.Constant(0.5), Momentum: 0.5}
	w := mlxc.Scalar[float32](1)
	state, err := optimizer.Init(w)
	for range 2 {
		if err == nil {
			w, state, err = optimizer.Update(w, mlxc.Scalar[float32](2), state)
		}
	}
	fmt.Println(w, state.Velocity, state.Step, err)
	// Output: array(-1.5, dtype=float32) map[:array(3, dtype=float32)] array(2, dtype=int32) <nil>
}

// The state is a tree and can be saved to a file.
func ExampleAdamWState() {
	p := map[string]*mlxc.Array{"weight": mlxc.Ones(mlxc.Float16, 2), "bias": mlxc.Ones(mlxc.Float32)}
	state, err := optim.AdamW[map[string]*mlxc.Array]{}.Init(p)
	if err != nil {
		fmt.Println(err)
		return
	}
	names, err := tree.Names(state)
	fmt.Println(names, err)
	// Output: [step mean.bias mean.weight variance.bias variance.weight master.weight] <nil>
}

// The float32 masters of 16-bit parameters.
func ExampleByName() {
	optimizer := optim.SGD[*mlxc.Array]{LearningRate: optim.Constant(1)}
	w := mlxc.Ones(mlxc.BFloat16)
	state, err := optimizer.Init(w)
	for range 3 { // three steps of 2⁻⁹; just below 1, one step alone is lost in bfloat16
		if err == nil {
			w, state, err = optimizer.Update(w, mlxc.Scalar(float32(1)/512), state)
		}
		fmt.Println(w, state.Master[""])
	}
	fmt.Println(err)
	// Output:
	// array(1, dtype=bfloat16) array(0.998047, dtype=float32)
	// array(0.996094, dtype=bfloat16) array(0.996094, dtype=float32)
	// array(0.992188, dtype=bfloat16) array(0.994141, dtype=float32)
	// <nil>
}

// Fits y = w·x.
func ExampleTrainer() {
	type data struct{ X, Y *mlxc.Array }
	batch := data{mlxc.FromSlice([]float32{1, 2}), mlxc.FromSlice([]float32{3, 6})}
	trainer, err := optim.NewTrainer(mlxc.Scalar[float32](0), optim.SGD[*mlxc.Array]{LearningRate: optim.Constant(0.1)},
		func(w *mlxc.Array, d data) *mlxc.Array { return w.Mul(d.X).Sub(d.Y).Square().Mean() })
	if err != nil {
		fmt.Println(err)
		return
	}
	defer trainer.Close()
	for range 3 {
		fmt.Println(trainer.Step(batch))
	}
	fmt.Println(trainer.State.Params)
	// Output:
	// 22.5 <nil>
	// 5.625 <nil>
	// 1.40625 <nil>
	// array(2.625, dtype=float32)
}

// A training is saved and resumed as a map of arrays, which files hold.
func ExampleTraining() {
	loss := func(w, target *mlxc.Array) *mlxc.Array { return w.Sub(target).Square() }
	sgd := optim.SGD[*mlxc.Array]{LearningRate: optim.Constant(0.25), Momentum: 0.5}
	start := func() *optim.Trainer[*mlxc.Array, optim.SGDState, *mlxc.Array] {
		trainer, err := optim.NewTrainer(mlxc.Scalar[float32](0), sgd, loss)
		if err != nil {
			panic(err)
		}
		return trainer
	}
	first, target := start(), mlxc.Scalar[float32](8)
	fmt.Println(first.Step(target))
	saved, err := tree.ToMap(first.State) // for mlxio.SaveSafetensors
	if err != nil {
		panic(err)
	}

	second := start()
	if second.State, err = tree.FromMap(second.State, saved); err != nil {
		panic(err)
	}
	fmt.Println(second.Step(target))
	fmt.Println(second.State.Params, second.State.Optimizer.Step)
	// Output:
	// 64 <nil>
	// 16 <nil>
	// array(8, dtype=float32) array(2, dtype=int32)
}

// sign moves each parameter by a constant along the sign of its gradient.
type sign struct{ rate float64 }

func (sign) Init(*mlxc.Array) (none struct{}, err error) { return none, nil }

func (s sign) Update(w, grad *mlxc.Array, none struct{}) (*mlxc.Array, struct{}, error) {
	return w.Sub(grad.Sign().MulScalar(s.rate)), none, nil
}

// An optimizer of one's own.
func ExampleOptimizer() {
	trainer, err := optim.NewTrainer(mlxc.Scalar[float32](5), sign{0.5},
		func(w, target *mlxc.Array) *mlxc.Array { return w.Sub(target).Abs() })
	if err != nil {
		fmt.Println(err)
		return
	}
	for range 4 {
		loss, err := trainer.Step(mlxc.Scalar[float32](3))
		fmt.Println(loss, err)
	}
	// Output:
	// 2 <nil>
	// 1.5 <nil>
	// 1 <nil>
	// 0.5 <nil>
}
