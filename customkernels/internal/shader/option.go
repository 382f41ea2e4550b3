package shader

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/mlxgrad/mlxgrad/customkernels/internal/msl"
	"github.com/mlxgrad/mlxgrad/customkernels/internal/translate"
)

// An Option gives [File.Kernel] a value that the function's text leaves open. It returns nil if the function has no
// use for the value.
type Option func(*msl.Kernel) (translate.MLXOption, error)

// ThreadgroupSize sizes a [[threadgroup(n)]] argument, in elements. MLX has no such
// arguments: the kernel gets a threadgroup array of this size instead.
func ThreadgroupSize(argument string, elements int) Option {
	return func(k *msl.Kernel) (translate.MLXOption, error) {
		if !slices.ContainsFunc(k.Threadgroup, func(a msl.ThreadgroupArgument) bool { return a.Name == argument }) {
			return nil, fmt.Errorf("there is no threadgroup argument %s to size", argument)
		}
		if elements < 1 {
			return nil, fmt.Errorf("the threadgroup argument %s cannot have %d elements", argument, elements)
		}
		return translate.ThreadgroupSize(argument, elements), nil
	}
}

// FunctionConstant gives a [[function_constant(n)]] its value: a bool, an int or a
// float32.
func FunctionConstant[T bool | int | float32](name string, value T) Option {
	return func(k *msl.Kernel) (translate.MLXOption, error) {
		if !slices.ContainsFunc(k.Constants, func(c msl.FunctionConstant) bool { return c.Name == name }) {
			return nil, fmt.Errorf("there is no function constant %s to set", name)
		}
		text := fmt.Sprint(value)
		if f, ok := any(value).(float32); ok {
			// All digits, and a literal of floating point.
			text = "float(" + strconv.FormatFloat(float64(f), 'e', -1, 32) + ")"
		}
		return translate.ConstantValue(name, text), nil
	}
}
