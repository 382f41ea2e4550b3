package customkernels

import "github.com/mlxgrad/mlxgrad/customkernels/internal/shader"

// Option gives Library.Kernel a value that the function's text leaves open.
type Option = shader.Option

// ThreadgroupSize sizes a [[threadgroup(n)]] argument, in elements. MLX has no such
// arguments: the kernel gets a threadgroup array of this size instead.
func ThreadgroupSize(argument string, elements int) Option {
	return shader.ThreadgroupSize(argument, elements)
}

// FunctionConstant gives a [[function_constant(n)]] its value: a bool, an int or a
// float32.
func FunctionConstant[T bool | int | float32](name string, value T) Option {
	return shader.FunctionConstant(name, value)
}
