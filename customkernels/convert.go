package customkernels

import (
	"github.com/mlxgrad/mlxgrad/customkernels/launchspec"
	"github.com/mlxgrad/mlxgrad/customkernels/sanitizer"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// DTypes of mlxc and sanitizer have equal numbers, so each converts to the other.

// Arguments returns the arguments of k.Launch for a launch description: see [launchspec.Spec.Arguments].
func (k *Kernel) Arguments(s launchspec.Spec, seed uint64) (Launch, []*mlxc.Array, error) {
	launch, arrays, err := s.Arguments(k.sanitizer, seed)
	if err != nil {
		return Launch{}, nil, err
	}
	l := Launch{
		Grid: launch.Grid, Threadgroup: launch.Threadgroup, Template: fromTemplate(launch.Template),
		InitValue: launch.InitValue, Undefined: launch.Undefined, Expected: launch.Expected,
	}
	for _, o := range launch.Outputs {
		l.Outputs = append(l.Outputs, mlxc.Output{Shape: o.Shape, DType: mlxc.DType(o.DType)})
	}
	for name, a := range launch.InOut {
		if l.InOut == nil {
			l.InOut = map[string]*mlxc.Array{}
		}
		l.InOut[name] = fromArray(a)
	}
	var inputs []*mlxc.Array
	for _, a := range arrays {
		inputs = append(inputs, fromArray(a))
	}
	return l, inputs, nil
}

func fromTemplate(args []sanitizer.TemplateArg) []mlxc.TemplateArg {
	var list []mlxc.TemplateArg
	for _, a := range args {
		if d, ok := a.Value.(sanitizer.DType); ok {
			a.Value = mlxc.DType(d)
		}
		list = append(list, mlxc.TemplateArg(a))
	}
	return list
}

// toLaunch converts a launch without the data of in-out buffers.
func toLaunch(l Launch) sanitizer.Launch {
	d := sanitizer.Launch{
		Grid: l.Grid, Threadgroup: l.Threadgroup, InitValue: l.InitValue, Undefined: l.Undefined, Expected: l.Expected,
	}
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
		d.InOut[name] = toArray(a)
	}
	return d
}

// toArray converts the dtype and shape of an array, without its data.
func toArray(a *mlxc.Array) sanitizer.Array {
	return sanitizer.Array{DType: sanitizer.DType(a.DType()), Shape: a.Shape()}
}

func toArrays(arrays []*mlxc.Array) []sanitizer.Array {
	list := make([]sanitizer.Array, len(arrays))
	for i, a := range arrays {
		list[i] = toArray(a)
	}
	return list
}

// elements returns the elements of an array in row-major order.
func elements(a *mlxc.Array) ([]byte, error) {
	return mlxc.ToSlice[uint8](a.Reshape(a.Size()).View(mlxc.Uint8))
}

// fromArray copies an array. A nonzero byte of a bool array is true.
func fromArray(a sanitizer.Array) *mlxc.Array {
	bytes := mlxc.FromSlice(a.Data)
	if a.DType == sanitizer.Bool {
		return bytes.AsType(mlxc.Bool).Reshape(a.Shape...)
	}
	return bytes.View(mlxc.DType(a.DType)).Reshape(a.Shape...)
}
