package ops_test

import (
	"fmt"
	"math"

	"github.com/mlxgrad/mlxgrad/mlxc"
	"github.com/mlxgrad/mlxgrad/ops"
)

func ExampleSSMScan() {
	// A state that decays by half at each step sums three inputs: 4, 2 + 1 and 1 + ½ + 2.
	x := mlxc.FromSlice([]float32{4, 1, 2}, 1, 3, 1, 1).BroadcastTo(1, 3, 1, 8)
	dt, a := mlxc.Ones(mlxc.Float32, 1, 3, 1), mlxc.FromSlice([]float32{-math.Ln2}, 1)
	first := mlxc.Arange(mlxc.Int32, 0, 8, 1).Equal(mlxc.Scalar[int32](0)).AsType(mlxc.Float32)
	b := first.BroadcastTo(1, 3, 1, 8)
	loss := func(args []*mlxc.Array) []*mlxc.Array {
		y, _ := ops.SSMScan(args[0], dt, a, b, b, ops.SSMScanConfig{})
		return []*mlxc.Array{y.Mean(-1).Sum()}
	}
	values, grads, err := mlxc.ValueAndGrad(loss)([]*mlxc.Array{x})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(values[0])
	fmt.Println(grads[0].Sum(-1).Reshape(3))
	// Output:
	// array(10.5, dtype=float32)
	// array([1.75, 1.5, 1], dtype=float32)
}

// The state after one token is the state before the next one.
func ExampleSSMStep() {
	dt, a := mlxc.Ones(mlxc.Float32, 1, 1), mlxc.FromSlice([]float32{-math.Ln2}, 1)
	b, state := mlxc.Ones(mlxc.Float32, 1, 1, 1), mlxc.Zeros(mlxc.Float32, 1, 1, 1, 1)
	for _, value := range []float32{4, 1, 2} {
		var y *mlxc.Array
		y, state = ops.SSMStep(mlxc.FromSlice([]float32{value}, 1, 1, 1), dt, a, b, b, nil, state)
		fmt.Println(y.Sum())
	}
	// Output:
	// array(4, dtype=float32)
	// array(3, dtype=float32)
	// array(3.5, dtype=float32)
}
