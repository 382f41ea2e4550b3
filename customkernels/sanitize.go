package customkernels

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/mlxgrad/mlxgrad/customkernels/sanitizer"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// A SanitizeReport is what Sanitize found.
type SanitizeReport struct {
	*sanitizer.Report
	// Outputs are those of the schedule in order, nil if it did not end.
	Outputs []*mlxc.Array
}

// Sanitize runs a launch under the checker, on the CPU whatever the current stream: see
// [sanitizer.Kernel.Sanitize]. It evaluates the inputs.
func (k *Kernel) Sanitize(ctx context.Context, l Launch, c sanitizer.Config, inputs ...*mlxc.Array) (*SanitizeReport, error) {
	if err := k.checkArrays(l, inputs); err != nil {
		return nil, err
	}
	fail := func(err error) (*SanitizeReport, error) { return nil, mlxc.NewError(k.name, err, inputs...) }
	launch, arrays := l.described(), describedAll(inputs)
	if err := k.sanitizer.Check(launch, arrays...); err == nil {
		// The sanitizer writes MLX's text without MLX.
		if err := k.checkText(l, launch, inputs, arrays); err != nil {
			return fail(err)
		}
	}
	if err := mlxc.Eval(slices.AppendSeq(slices.Clone(inputs), maps.Values(l.InOut))...); err != nil {
		return nil, err
	}
	var err error
	for i, a := range inputs {
		if arrays[i].Data, err = arrayBytes(a); err != nil {
			return nil, err
		}
	}
	for name, a := range l.InOut {
		content := launch.InOut[name]
		if content.Data, err = arrayBytes(a); err != nil {
			return nil, err
		}
		launch.InOut[name] = content
	}
	report, err := k.sanitizer.Sanitize(ctx, launch, c, arrays...)
	if err != nil {
		return fail(err)
	}
	r := &SanitizeReport{Report: report}
	for i, o := range report.Outputs {
		r.Outputs = append(r.Outputs, arrayFromBytes(o.Data, l.Outputs[i]))
	}
	return r, nil
}

// checkText returns an error if MLX generates another text than the one that is checked.
func (k *Kernel) checkText(l Launch, launch sanitizer.Launch, inputs []*mlxc.Array, arrays []sanitizer.Array) error {
	text, err := k.sanitizer.MetalSource(launch, arrays...)
	if err != nil {
		return err
	}
	generated, err := k.generate(k.normalized(l), inputs)
	if err != nil {
		return err
	}
	if text != generated {
		return fmt.Errorf("the sanitizer's text is not the one that MLX %s generates: its format is not that of the pinned version", mlxc.Version())
	}
	return nil
}

// arrayBytes reads an array's elements in row-major order.
func arrayBytes(a *mlxc.Array) ([]byte, error) {
	return mlxc.ToSlice[uint8](a.Reshape(a.Size()).View(mlxc.Uint8))
}

// arrayFromBytes makes an array of bytes in row-major order. A bool is what is not zero.
func arrayFromBytes(data []byte, o mlxc.Output) *mlxc.Array {
	bytes := mlxc.FromSlice(data)
	if o.DType == mlxc.Bool {
		return bytes.AsType(mlxc.Bool).Reshape(o.Shape...)
	}
	return bytes.View(o.DType).Reshape(o.Shape...)
}
