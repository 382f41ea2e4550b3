package ops_test

import (
	"fmt"

	"github.com/mlxgrad/mlxgrad/mlxc"
	"github.com/mlxgrad/mlxgrad/ops"
)

func ExampleLayerNorm() {
	loss := func(args []*mlxc.Array) []*mlxc.Array {
		x, weight, bias := args[0], args[1], args[2]
		return []*mlxc.Array{ops.LayerNorm(x, weight, bias, 0).Square().Sum()}
	}
	x := mlxc.FromSlice([]float32{0, 0, 2, 2, 5, 5, 7, 7}, 2, 4)
	weight := mlxc.FromSlice([]float32{1, 2, 3, 4})
	bias := mlxc.FromSlice([]float32{0, 1, 0, 1})
	values, grads, err := mlxc.ValueAndGrad(loss, 0, 1, 2)([]*mlxc.Array{x, weight, bias})
	if err != nil {
		fmt.Println(err)
		return
	}
	dw, err := mlxc.ToSlice[float32](grads[1])
	if err != nil {
		fmt.Println(err)
		return
	}
	db, err := mlxc.ToSlice[float32](grads[2])
	fmt.Printf("%v %.0f %.0f %v\n", values[0].AsType(mlxc.Int32), dw, db, err)
	// Output: array(72, dtype=int32) [4 4 12 20] [-4 -4 12 20] <nil>
}
