package ops_test

import (
	"fmt"

	"github.com/mlxgrad/mlxgrad/mlxc"
	"github.com/mlxgrad/mlxgrad/ops"
)

func ExampleGatedDeltaRule() {
	// Three steps of one head write with β = 1 for the same key, so each step replaces the value of the step before it.
	// The key is the first unit vector. Without decay the output of each step is its own value.
	first := mlxc.Arange(mlxc.Int32, 0, 16, 1).Equal(mlxc.Scalar[int32](0)).AsType(mlxc.Float32)
	k := first.BroadcastTo(1, 1, 3, 16)
	v := mlxc.FromSlice([]float32{2, 3, 5}, 1, 1, 3, 1).BroadcastTo(1, 1, 3, 16)
	loss := func(args []*mlxc.Array) []*mlxc.Array {
		logDecay, beta := mlxc.Zeros(mlxc.Float32, 1, 1, 3), mlxc.Ones(mlxc.Float32, 1, 1, 3)
		out, _ := ops.GatedDeltaRule(k, k, args[0], logDecay, beta, ops.GatedDeltaRuleConfig{Scale: 1})
		return []*mlxc.Array{out.Mean(-1).Sum()}
	}
	values, grads, err := mlxc.ValueAndGrad(loss)([]*mlxc.Array{v})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(values[0])
	fmt.Println(grads[0].Sum(-1))
	// Output:
	// array(10, dtype=float32)
	// array([[[1, 1, 1]]], dtype=float32)
}

// The state after one token is the state before the next one.
func ExampleGatedDeltaStep() {
	first := mlxc.Arange(mlxc.Int32, 0, 16, 1).Equal(mlxc.Scalar[int32](0)).AsType(mlxc.Float32)
	k := first.Reshape(1, 1, 16)
	logDecay, beta := mlxc.Zeros(mlxc.Float32, 1, 1), mlxc.FromSlice([]float32{0.5}, 1, 1)
	state := mlxc.Zeros(mlxc.Float32, 1, 1, 16, 16)
	for _, value := range []float32{2, 4} {
		v := mlxc.Full(mlxc.Float32, mlxc.Scalar(value), 1, 1, 16)
		var out *mlxc.Array
		out, state = ops.GatedDeltaStep(k, k, v, logDecay, beta, state, 1)
		fmt.Println(out.Mean())
	}
	// Output:
	// array(1, dtype=float32)
	// array(2.5, dtype=float32)
}
