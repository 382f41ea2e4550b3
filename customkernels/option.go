package customkernels

import "github.com/mlxgrad/mlxgrad/customkernels/internal/shader"

// An Option sets a value that the function's source leaves open. See Library.Kernel.
type Option = shader.Option

// ThreadgroupSize sets the number of elements of a [[threadgroup(n)]] argument. MLX has no such arguments, so the
// kernel declares a threadgroup array of this size instead.
func ThreadgroupSize(argument string, elements int) Option {
	return shader.ThreadgroupSize(argument, elements)
}

// FunctionConstant sets the value of the [[function_constant(n)]] called name.
func FunctionConstant[T bool | int | float32](name string, value T) Option {
	return shader.FunctionConstant(name, value)
}
