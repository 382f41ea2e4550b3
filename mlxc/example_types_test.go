package mlxc_test

import (
	"errors"
	"fmt"

	"github.com/mlxgrad/mlxgrad/mlxc"
	"github.com/mlxgrad/mlxgrad/mlxc/bfloat16"
)

func ExampleDType() {
	half := mlxc.FromSlice([]float32{1, 0.1}).AsType(mlxc.BFloat16)
	fmt.Println(half.DType(), half.DType().Size(), half.DType().IsFloating())
	// bfloat16 and float16 are promoted to float32, which holds all values of both.
	fmt.Println(half.Add(mlxc.Ones(mlxc.Float16, 2)).DType())
	// Output:
	// bfloat16 2 true
	// float32
}

func ExampleElement() {
	// Each dtype is read and written as one Go type.
	x := mlxc.FromSlice([]bfloat16.BFloat16{bfloat16.FromFloat32(1.5)})
	fmt.Println(x.DType())
	_, err := mlxc.ToSlice[float32](x)
	fmt.Println(errors.Unwrap(err))
	v, err := mlxc.ToSlice[float32](x.AsType(mlxc.Float32))
	fmt.Println(v, err)
	// Output:
	// bfloat16
	// the elements are not float32: convert with AsType first
	// [1.5] <nil>
}

func ExampleBackend() {
	err := mlxc.WithDevice(mlxc.CPU, func() {
		switch mlxc.CurrentBackend() {
		case mlxc.BackendMetal, mlxc.BackendCUDA:
			fmt.Println("a custom kernel")
		case mlxc.BackendCPU:
			fmt.Println("MLX's operations")
		}
	})
	fmt.Println(err)
	// Output:
	// MLX's operations
	// <nil>
}

func ExampleAttentionConfig() {
	// Two queries and two keys of one head; the values are 1 and 3. Both keys score the same.
	q, k := mlxc.Zeros(mlxc.Float32, 1, 1, 2, 4), mlxc.Ones(mlxc.Float32, 1, 1, 2, 4)
	v := mlxc.FromSlice([]float32{1, 3}, 1, 1, 2, 1)
	plain := mlxc.ScaledDotProductAttention(q, k, v, mlxc.AttentionConfig{})
	causal := mlxc.ScaledDotProductAttention(q, k, v, mlxc.AttentionConfig{Causal: true})
	fmt.Println(plain.Squeeze(), causal.Squeeze())
	// Output: array([2, 2], dtype=float32) array([1, 2], dtype=float32)
}
