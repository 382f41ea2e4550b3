package customkernels

import (
	"github.com/mlxgrad/mlxgrad/customkernels/sanitizer"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// A LaunchSpec is one launch of a kernel as a comment in its shader file describes it: see
// [sanitizer.LaunchSpec].
type LaunchSpec struct{ sanitizer.LaunchSpec }

// ParseLaunches finds the launch descriptions of a shader file: see [sanitizer.ParseLaunches].
func ParseLaunches(src []byte) ([]LaunchSpec, error) {
	found, err := sanitizer.ParseLaunches(src)
	if err != nil {
		return nil, err
	}
	specs := make([]LaunchSpec, len(found))
	for i, s := range found {
		specs[i] = LaunchSpec{s}
	}
	return specs, nil
}

// Arguments makes the arguments of k.Launch: see [sanitizer.LaunchSpec.Arguments].
func (s LaunchSpec) Arguments(k *Kernel, seed uint64) (Launch, []*mlxc.Array, error) {
	launch, arrays, err := s.LaunchSpec.Arguments(k.sanitizer, seed)
	if err != nil {
		return Launch{}, nil, err
	}
	l := Launch{Grid: launch.Grid, Threadgroup: launch.Threadgroup, InitValue: launch.InitValue, Undefined: launch.Undefined}
	for _, a := range launch.Template {
		if d, ok := a.Value.(sanitizer.DType); ok {
			a.Value = mlxc.DType(d)
		}
		l.Template = append(l.Template, mlxc.TemplateArg(a))
	}
	for _, o := range launch.Outputs {
		l.Outputs = append(l.Outputs, mlxc.Output{Shape: o.Shape, DType: mlxc.DType(o.DType)})
	}
	for name, a := range launch.InOut {
		if l.InOut == nil {
			l.InOut = map[string]*mlxc.Array{}
		}
		l.InOut[name] = fromSanitizer(a)
	}
	var inputs []*mlxc.Array
	for _, a := range arrays {
		inputs = append(inputs, fromSanitizer(a))
	}
	return l, inputs, nil
}

func fromSanitizer(a sanitizer.Array) *mlxc.Array {
	return arrayFromBytes(a.Data, mlxc.Output{Shape: a.Shape, DType: mlxc.DType(a.DType)})
}
