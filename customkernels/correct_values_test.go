package customkernels

import (
	"fmt"
	"slices"

	"github.com/mlxgrad/mlxgrad/mlxc"
)

// uints returns scalar inputs of type uint.
func uints(n ...int) arrays {
	var a arrays
	for _, x := range n {
		a = append(a, mlxc.Scalar(uint32(x)))
	}
	return a
}

// ints returns scalar inputs of type int.
func ints(n ...int) arrays {
	var a arrays
	for _, x := range n {
		a = append(a, mlxc.Scalar(int32(x)))
	}
	return a
}

// inputs concatenates lists of inputs.
func inputs(lists ...arrays) arrays { return slices.Concat(lists...) }

// template returns template arguments, given alternating names and values.
func template(pairs ...any) []mlxc.TemplateArg {
	var args []mlxc.TemplateArg
	for i := 0; i < len(pairs); i += 2 {
		args = append(args, mlxc.TemplateArg{Name: pairs[i].(string), Value: pairs[i+1]})
	}
	return args
}

// output returns the description of an output.
func output(d mlxc.DType, shape ...int) mlxc.Output { return mlxc.Output{Shape: shape, DType: d} }

// initially returns a value for Launch.InitValue.
func initially(v float32) *float32 { return &v }

// named joins the parts of a launch's name.
func named(kernel string, parts ...any) string {
	for _, p := range parts {
		kernel += fmt.Sprintf("/%v", p)
	}
	return kernel
}
