package ops_test

import (
	"fmt"

	"github.com/mlxgrad/mlxgrad/mlxc"
	"github.com/mlxgrad/mlxgrad/ops"
)

func ExampleRMSNorm() {
	loss := func(args []*mlxc.Array) []*mlxc.Array {
		x, weight := args[0], args[1]
		return []*mlxc.Array{ops.RMSNorm(x, weight, 1e-5).Square().Sum()}
	}
	x := mlxc.FromSlice([]float32{1, 2, 3, 4}, 2, 2)
	weight := mlxc.FromSlice([]float32{1, 2})
	values, grads, err := mlxc.ValueAndGrad(loss, 0, 1)([]*mlxc.Array{x, weight})
	if err != nil {
		fmt.Println(err)
		return
	}
	dw, err := mlxc.ToSlice[float32](grads[1])
	fmt.Printf("%v %.2f %v\n", values[0].AsType(mlxc.Int32), dw, err)
	// Output: array(12, dtype=int32) [2.24 11.52] <nil>
}
