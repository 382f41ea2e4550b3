package customkernels

import (
	"fmt"
	"slices"

	"github.com/mlxgrad/mlxgrad/mlxc"
)

// uints makes scalar inputs of the type uint.
func uints(n ...int) arrays {
	var a arrays
	for _, x := range n {
		a = append(a, mlxc.Scalar(uint32(x)))
	}
	return a
}

// ints makes scalar inputs of the type int.
func ints(n ...int) arrays {
	var a arrays
	for _, x := range n {
		a = append(a, mlxc.Scalar(int32(x)))
	}
	return a
}

// inputs puts lists of inputs together.
func inputs(lists ...arrays) arrays { return slices.Concat(lists...) }

// template makes template arguments of pairs of name and value.
func template(pairs ...any) []mlxc.TemplateArg {
	var args []mlxc.TemplateArg
	for i := 0; i < len(pairs); i += 2 {
		args = append(args, mlxc.TemplateArg{Name: pairs[i].(string), Value: pairs[i+1]})
	}
	return args
}

// output describes one output.
func output(d mlxc.DType, shape ...int) mlxc.Output { return mlxc.Output{Shape: shape, DType: d} }

// initially is an initial value.
func initially(v float32) *float32 { return &v }

// named joins the parts of a launch's name.
func named(kernel string, parts ...any) string {
	for _, p := range parts {
		kernel += fmt.Sprintf("/%v", p)
	}
	return kernel
}
