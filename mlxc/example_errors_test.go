package mlxc_test

import (
	"errors"
	"fmt"
	"io"

	"github.com/mlxgrad/mlxgrad/mlxc"
)

func ExampleError() {
	y := mlxc.Ones(mlxc.Float32, 2, 3).MatMul(mlxc.Ones(mlxc.Int32, 4))
	var op *mlxc.Error
	if errors.As(mlxc.Eval(y.Sum()), &op) {
		fmt.Printf("%s %v %v\n", op.Op, op.Shapes, op.DTypes)
	}
	x := mlxc.Ones(mlxc.Float32)
	x.Free()
	fmt.Println(errors.Is(x.Exp().Err(), mlxc.ErrFreed))
	// Output:
	// matmul [[2 3] [4]] [float32 int32]
	// true
}

func ExamplePanicError() {
	f := func([]*mlxc.Array) []*mlxc.Array { panic(io.ErrUnexpectedEOF) }
	_, err := mlxc.Grad(f)([]*mlxc.Array{mlxc.Scalar[float32](1)})
	var p *mlxc.PanicError
	fmt.Println(errors.As(err, &p), p.Value, len(p.Stack) > 0)
	fmt.Println(errors.Is(err, io.ErrUnexpectedEOF))
	// Output:
	// true unexpected EOF true
	// true
}
