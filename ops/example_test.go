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

func ExampleCrossEntropy() {
	// The third token is padding.
	targets, padding := mlxc.FromSlice([]int32{1, 0, 9}), 9
	loss := func(args []*mlxc.Array) []*mlxc.Array {
		return []*mlxc.Array{ops.CrossEntropy(args[0], targets, ops.CrossEntropyConfig{IgnoreIndex: &padding})}
	}
	logits := mlxc.Zeros(mlxc.Float32, 3, 4)
	values, grads, err := mlxc.ValueAndGrad(loss)([]*mlxc.Array{logits})
	if err != nil {
		fmt.Println(err)
		return
	}
	mean, err := mlxc.Item[float32](values[0])
	fmt.Printf("%.4f %v\n", mean, err) // ln 4
	fmt.Println(grads[0])
	// Output:
	// 1.3863 <nil>
	// array([[0.125, -0.375, 0.125, 0.125],
	//        [-0.375, 0.125, 0.125, 0.125],
	//        [0, 0, 0, 0]], dtype=float32)
}

func ExampleMatMul() {
	loss := func(args []*mlxc.Array) []*mlxc.Array {
		return []*mlxc.Array{ops.MatMul(args[0], args[1]).Sum()}
	}
	x := mlxc.FromSlice([]float32{1, 2, 3, 4}, 2, 2)
	weight := mlxc.FromSlice([]float32{5, 6, 7, 8}, 2, 2)
	values, grads, err := mlxc.ValueAndGrad(loss, 1)([]*mlxc.Array{x, weight})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(values[0])
	fmt.Println(grads[0])
	// Output:
	// array(134, dtype=float32)
	// array([[4, 4],
	//        [6, 6]], dtype=float32)
}

func ExampleLinearCrossEntropy() {
	targets := mlxc.FromSlice([]int32{1, 0})
	loss := func(args []*mlxc.Array) []*mlxc.Array {
		hidden, head := args[0], args[1]
		return []*mlxc.Array{ops.LinearCrossEntropy(hidden, head, targets, ops.CrossEntropyConfig{})}
	}
	hidden := mlxc.FromSlice([]float32{1, 0, 0, 2}, 2, 2)
	head := mlxc.Zeros(mlxc.Float32, 4, 2) // of four classes
	_, grads, err := mlxc.ValueAndGrad(loss, 0, 1)([]*mlxc.Array{hidden, head})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(grads[1])
	// Output:
	// array([[0.125, -0.75],
	//        [-0.375, 0.25],
	//        [0.125, 0.25],
	//        [0.125, 0.25]], dtype=float32)
}

func ExampleSoftmax() {
	x := mlxc.FromSlice([]float32{0, 0, 0, 0}, 2, 2)
	first := mlxc.FromSlice([]float32{1, 0, 1, 0}, 2, 2)
	loss := func(args []*mlxc.Array) []*mlxc.Array {
		return []*mlxc.Array{ops.Softmax(args[0]).Mul(first).Sum()}
	}
	_, grads, err := mlxc.ValueAndGrad(loss)([]*mlxc.Array{x})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(grads[0])
	// Output:
	// array([[0.25, -0.25],
	//        [0.25, -0.25]], dtype=float32)
}

func ExampleTranspose2D() {
	x := mlxc.FromSlice([]float32{1, 2, 3, 4, 5, 6}, 2, 3)
	fmt.Println(ops.Transpose2D(x))
	// Output:
	// array([[1, 4],
	//        [2, 5],
	//        [3, 6]], dtype=float32)
}
