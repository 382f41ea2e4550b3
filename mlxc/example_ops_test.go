package mlxc_test

import (
	"errors"
	"fmt"

	"github.com/mlxgrad/mlxgrad/mlxc"
)

// A list with one Index per axis selects elements.
func ExampleIndex() {
	a := mlxc.Arange(mlxc.Int32, 0, 12, 1).Reshape(3, 4)
	fmt.Println(a.Index(mlxc.At(-1)))
	fmt.Println(a.Index(mlxc.Range(0, 2), mlxc.At(1)))
	fmt.Println(a.Index(mlxc.At(0), mlxc.All.Step(-1)))
	ids := mlxc.FromSlice([]int32{0, 2})
	fmt.Println(a.Index(mlxc.IDs(ids), mlxc.IDs(ids)))
	fmt.Println(errors.Unwrap(a.Index(mlxc.At(3)).Err()))
	// Output:
	// array([8, 9, 10, 11], dtype=int32)
	// array([1, 5], dtype=int32)
	// array([3, 2, 1, 0], dtype=int32)
	// array([0, 10], dtype=int32)
	// axis 0: there is no position 3: the axis has size 3
}

// Arrays are immutable: an update returns a new array.
func ExampleArray_SetAt() {
	a := mlxc.Zeros(mlxc.Int32, 2, 3)
	b := a.SetAt(mlxc.Scalar[int32](7), mlxc.All, mlxc.At(0))
	// Updates of a repeated element are added.
	c := b.AddAt(mlxc.FromSlice([]int32{1, 2}), mlxc.At(1), mlxc.IDs(mlxc.FromSlice([]int32{2, 2})))
	fmt.Println(a)
	fmt.Println(c)
	// Output:
	// array([[0, 0, 0],
	//        [0, 0, 0]], dtype=int32)
	// array([[7, 0, 0],
	//        [7, 0, 3]], dtype=int32)
}

func ExampleArray_Along() {
	a := mlxc.FromSlice([]float32{1, 2, 3, 4}, 2, 2)
	for i, row := range a.Along(0) {
		fmt.Println(i, row.Sum())
	}
	// Output:
	// 0 array(3, dtype=float32)
	// 1 array(7, dtype=float32)
}

func ExamplePadding() {
	a := mlxc.FromSlice([]int32{1, 2, 3})
	around := mlxc.Padding{Axis: 0, Before: 2, After: 1}
	fmt.Println(a.Pad(nil, around))
	fmt.Println(a.PadReflect(around))
	// Output:
	// array([0, 0, 1, 2, 3, 0], dtype=int32)
	// array([3, 2, 1, 2, 3, 2], dtype=int32)
}

func ExampleScanConfig() {
	a := mlxc.FromSlice([]int32{1, 2, 3})
	fmt.Println(a.CumSum(0))
	fmt.Println(a.CumSumWith(0, mlxc.ScanConfig{Exclusive: true}))
	fmt.Println(a.CumSumWith(0, mlxc.ScanConfig{Reverse: true}))
	// Output:
	// array([1, 3, 6], dtype=int32)
	// array([0, 1, 3], dtype=int32)
	// array([6, 5, 3], dtype=int32)
}

func ExampleTolerance() {
	a, b := mlxc.FromSlice([]float32{1, 100}), mlxc.FromSlice([]float32{1.0000001, 101})
	fmt.Println(a.IsClose(b, mlxc.Tolerance{}))
	fmt.Println(a.AllClose(b, mlxc.Tolerance{Relative: 0.02}))
	// Output:
	// array([true, false], dtype=bool)
	// array(true, dtype=bool)
}

func ExampleNaNToNumConfig() {
	zero := mlxc.Scalar[float32](0)
	a := mlxc.FromSlice([]float32{0, 1, 2}).Div(zero) // NaN and infinities
	fmt.Println(a.NaNToNum(mlxc.NaNToNumConfig{NaN: -1, PosInf: new(float32(9))}))
	// Output: array([-1, 9, 9], dtype=float32)
}

func ExampleMeshgridConfig() {
	x, y := mlxc.FromSlice([]int32{1, 2, 3}), mlxc.FromSlice([]int32{10, 20})
	grid := mlxc.Meshgrid(mlxc.MeshgridConfig{Sparse: true}, x, y)
	fmt.Println(grid[0].Add(grid[1]))
	// Output:
	// array([[11, 12, 13],
	//        [21, 22, 23]], dtype=int32)
}
