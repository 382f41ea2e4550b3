package customkernels

import (
	"errors"
	"fmt"

	"github.com/mlxgrad/mlxgrad/customkernels/sanitizer"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// check returns an error if MLX cannot make the launch.
func (k *Kernel) check(l Launch, inputs []*mlxc.Array) error {
	if err := k.checkArrays(l, inputs); err != nil {
		return err
	}
	described, arrays := l.described(), describedAll(inputs)
	err := k.sanitizer.Check(described, arrays...)
	if err == nil {
		reason := k.sanitizer.OutsideMLX(described, arrays...)
		if reason == "" {
			return nil
		}
		err = fmt.Errorf("MLX's custom kernels cannot express this launch, which Sanitize can still check: %s", reason)
	}
	return mlxc.NewError(k.name, err, inputs...)
}

// checkArrays returns the error of the first invalid array.
func (k *Kernel) checkArrays(l Launch, inputs []*mlxc.Array) error {
	for i, a := range inputs {
		if err := a.Err(); err != nil {
			if carried := (*mlxc.Error)(nil); errors.As(err, &carried) {
				return err // the first error is passed on
			}
			return mlxc.NewError(k.name, fmt.Errorf("input %d: %w", i+1, err), inputs...)
		}
	}
	for name, a := range l.InOut {
		if err := a.Err(); err != nil {
			return mlxc.NewError(k.name, fmt.Errorf("the in-out buffer %s: %w", name, err), inputs...)
		}
	}
	return nil
}

// described is the launch as package sanitizer has it. In-out buffers have no data.
func (l Launch) described() sanitizer.Launch {
	d := sanitizer.Launch{Grid: l.Grid, Threadgroup: l.Threadgroup, InitValue: l.InitValue, Undefined: l.Undefined}
	if len(l.Template) > 0 {
		d.Template = make([]sanitizer.TemplateArg, len(l.Template))
	}
	for i, a := range l.Template {
		d.Template[i] = sanitizer.TemplateArg(a)
		if t, ok := a.Value.(mlxc.DType); ok {
			d.Template[i].Value = sanitizer.DType(t)
		}
	}
	d.Outputs = make([]sanitizer.Output, len(l.Outputs))
	for i, o := range l.Outputs {
		d.Outputs[i] = sanitizer.Output{Shape: o.Shape, DType: sanitizer.DType(o.DType)}
	}
	if len(l.InOut) > 0 {
		d.InOut = make(map[string]sanitizer.Array, len(l.InOut))
	}
	for name, a := range l.InOut {
		d.InOut[name] = described(a)
	}
	return d
}

// described is an array as package sanitizer has it, without data.
func described(a *mlxc.Array) sanitizer.Array {
	return sanitizer.Array{DType: sanitizer.DType(a.DType()), Shape: a.Shape()}
}

func describedAll(arrays []*mlxc.Array) []sanitizer.Array {
	list := make([]sanitizer.Array, len(arrays))
	for i, a := range arrays {
		list[i] = described(a)
	}
	return list
}
