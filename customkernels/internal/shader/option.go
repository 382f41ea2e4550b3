package shader

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/mlxgrad/mlxgrad/customkernels/internal/msl"
	"github.com/mlxgrad/mlxgrad/customkernels/internal/translate"
)

// An Option sets a value that the function's source leaves open, for [File.Kernel]. It returns nil if it does not apply
// to the function.
type Option func(*msl.Kernel) (translate.Option, error)

// ThreadgroupSize sets the number of elements of a [[threadgroup(n)]] argument. MLX has no such arguments, so the
// kernel declares a threadgroup array of this size instead.
func ThreadgroupSize(argument string, elements int) Option {
	return func(k *msl.Kernel) (translate.Option, error) {
		if !slices.ContainsFunc(k.Threadgroup, func(a msl.ThreadgroupArgument) bool { return a.Name == argument }) {
			return nil, fmt.Errorf("there is no threadgroup argument %s to size", argument)
		}
		if elements < 1 {
			return nil, fmt.Errorf("the threadgroup argument %s cannot have %d elements: it must have at least 1",
				argument, elements)
		}
		return translate.ThreadgroupSize(argument, elements), nil
	}
}

// FunctionConstant sets the value of the [[function_constant(n)]] called name.
func FunctionConstant[T bool | int | float32](name string, value T) Option {
	return func(k *msl.Kernel) (translate.Option, error) {
		if !slices.ContainsFunc(k.Constants, func(c msl.FunctionConstant) bool { return c.Name == name }) {
			return nil, fmt.Errorf("there is no function constant %s to set", name)
		}
		text := fmt.Sprint(value)
		if f, ok := any(value).(float32); ok {
			// A floating-point literal with all digits.
			text = "float(" + strconv.FormatFloat(float64(f), 'e', -1, 32) + ")"
		}
		return translate.ConstantValue(name, text), nil
	}
}

// GivenBuffer marks a buffer as given by the launch, if MLX would otherwise add it, such as x_shape of the input x.
func GivenBuffer(name string) Option {
	return func(*msl.Kernel) (translate.Option, error) { return translate.GivenBuffer(name), nil }
}
