package mlxc_test

import (
	"fmt"

	"github.com/mlxgrad/mlxgrad/mlxc"
)

func Example() {
	x := mlxc.FromSlice([]float32{1, 2, 3, 4}, 2, 2)
	y := x.MatMul(x).Sum(0)
	fmt.Println(y)
	// Output: array([22, 32], dtype=float32)
}

func ExampleArray_Err() {
	a, b := mlxc.Ones(mlxc.Float32, 2, 3), mlxc.Ones(mlxc.Float32, 4)
	y := a.Add(b).Exp().Sum()
	fmt.Println(y.Err())
	// Output: mlxc: add float32(2,3), float32(4): [broadcast_shapes] Shapes (2,3) and (4) cannot be broadcast. (at mlxc/example_test.go:18)
}

func ExampleVJP() {
	f := func(args []*mlxc.Array) []*mlxc.Array { return []*mlxc.Array{args[0].Square()} }
	x := mlxc.FromSlice([]float32{1, 2, 3})
	cotangent := mlxc.FromSlice([]float32{1, 1, 10})
	_, grads, err := mlxc.VJP(f, []*mlxc.Array{x}, []*mlxc.Array{cotangent})
	fmt.Println(grads[0], err)
	// Output: array([2, 4, 60], dtype=float32) <nil>
}

func ExampleValueAndGrad() {
	loss := func(args []*mlxc.Array) []*mlxc.Array {
		x, w := args[0], args[1]
		return []*mlxc.Array{x.Mul(w).Sum().Square()}
	}
	x, w := mlxc.FromSlice([]float32{1, 2}), mlxc.FromSlice([]float32{3, 4})
	values, grads, err := mlxc.ValueAndGrad(loss, 1)([]*mlxc.Array{x, w})
	fmt.Println(values[0], grads[0], err)
	// Output: array(121, dtype=float32) array([22, 44], dtype=float32) <nil>
}

func ExampleCustomVJP() {
	// The gradient of the absolute value at 0 is taken as 1.
	abs := mlxc.CustomVJP(
		func(args []*mlxc.Array) []*mlxc.Array { return []*mlxc.Array{args[0].Abs()} },
		func(primals, cotangents, _ []*mlxc.Array) []*mlxc.Array {
			minus := cotangents[0].Neg()
			return []*mlxc.Array{mlxc.Where(primals[0].Less(mlxc.Scalar[float32](0)), minus, cotangents[0])}
		})
	x := mlxc.FromSlice([]float32{-2, 0, 5})
	_, grads, err := mlxc.VJP(abs, []*mlxc.Array{x}, []*mlxc.Array{mlxc.Ones(mlxc.Float32, 3)})
	fmt.Println(grads[0], err)
	// Output: array([-1, 1, 1], dtype=float32) <nil>
}

func ExampleCompile() {
	f := mlxc.Compile(func(args []*mlxc.Array) []*mlxc.Array {
		return []*mlxc.Array{args[0].Exp().Log().Add(args[0])}
	})
	y, err := f.Call(mlxc.FromSlice([]float32{1, 2}))
	fmt.Println(y[0], err)
	// Output: array([2, 4], dtype=float32) <nil>
}

func ExampleWithScope() {
	w := mlxc.FromSlice([]float32{1, 2})
	for range 3 {
		mlxc.WithScope(func() {
			step := w.MulScalar(0.5) // freed at the end of the scope
			next := w.Sub(step).Keep()
			w.Free()
			w = next
		})
	}
	fmt.Println(w)
	// Output: array([0.125, 0.25], dtype=float32)
}

func ExampleVmap() {
	// dot is written for two vectors; Vmap runs it on the rows of a matrix and one vector.
	dot := func(args []*mlxc.Array) []*mlxc.Array { return []*mlxc.Array{args[0].Mul(args[1]).Sum()} }
	rows := mlxc.FromSlice([]float32{1, 2, 3, 4, 5, 6}, 3, 2)
	v := mlxc.FromSlice([]float32{1, 10})
	fmt.Println(mlxc.Vmap(dot, []int{0, mlxc.Unmapped}, nil)([]*mlxc.Array{rows, v})[0])
	// Output: array([21, 43, 65], dtype=float32)
}
