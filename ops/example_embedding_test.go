package ops_test

import (
	"fmt"

	"github.com/mlxgrad/mlxgrad/mlxc"
	"github.com/mlxgrad/mlxgrad/ops"
)

func ExampleEmbedding() {
	ids := mlxc.FromSlice([]uint32{2, 0, 2})
	loss := func(args []*mlxc.Array) []*mlxc.Array {
		return []*mlxc.Array{ops.Embedding(args[0], ids).Sum()}
	}
	weight := mlxc.FromSlice([]float32{1, 2, 3, 4, 5, 6}, 3, 2)
	values, grads, err := mlxc.ValueAndGrad(loss)([]*mlxc.Array{weight})
	if err != nil {
		fmt.Println(err)
		return
	}
	dw, err := mlxc.ToSlice[float32](grads[0])
	fmt.Println(values[0], dw, err)
	// Output: array(25, dtype=float32) [1 1 0 0 2 2] <nil>
}

// A step of gradient descent that touches the rows in use alone.
func ExampleEmbeddingSparseGradient() {
	weight := mlxc.Ones(mlxc.Float32, 1000, 2)
	ids := mlxc.FromSlice([]uint32{7, 3, 7})
	dy := mlxc.FromSlice([]float32{1, 2, 3, 4, 5, 6}, 3, 2)

	rows, gradients, count := ops.EmbeddingSparseGradient(dy, ids, weight.Dim(0))
	n, err := mlxc.Item[uint32](count)
	if err != nil {
		fmt.Println(err)
		return
	}
	used := rows.Slice([]int{0}, []int{int(n)}, nil)
	step := gradients.Slice([]int{0, 0}, []int{int(n), 2}, nil).MulScalar(-0.5)
	weight = weight.ScatterAdd(used, step, 0)

	changed, err := mlxc.ToSlice[float32](weight.Take(used, 0))
	fmt.Println(used, changed, err)
	// Output: array([3, 7], dtype=uint32) [-0.5 -1 -2 -3] <nil>
}
