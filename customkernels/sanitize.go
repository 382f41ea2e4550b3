package customkernels

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/mlxgrad/mlxgrad/customkernels/sanitizer"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// A SanitizeReport is the result of Sanitize.
type SanitizeReport struct {
	*sanitizer.Report
	// Outputs are the outputs of the in-order schedule, or nil if that schedule did not end.
	Outputs []*mlxc.Array
}

// Sanitize runs a launch under the checker, on the CPU regardless of the current stream: see
// [sanitizer.Kernel.Sanitize]. It evaluates the inputs and the in-out buffers.
func (k *Kernel) Sanitize(
	ctx context.Context, l Launch, c sanitizer.Config, inputs ...*mlxc.Array,
) (*SanitizeReport, error) {
	if err := k.checkArguments(l, inputs); err != nil {
		return nil, err
	}
	fail := func(err error) (*SanitizeReport, error) { return nil, mlxc.NewError(k.name, err, inputs...) }
	launch, arrays := toLaunch(l), toArrays(inputs)
	if err := k.sanitizer.Check(launch, arrays...); err == nil {
		if err := k.checkText(l, launch, inputs, arrays); err != nil {
			return fail(err)
		}
	}
	if err := mlxc.Eval(slices.AppendSeq(slices.Clone(inputs), maps.Values(l.InOut))...); err != nil {
		return nil, err
	}
	var err error
	for i, a := range inputs {
		if arrays[i].Data, err = elements(a); err != nil {
			return nil, err
		}
	}
	for name, a := range l.InOut {
		content := launch.InOut[name]
		if content.Data, err = elements(a); err != nil {
			return nil, err
		}
		launch.InOut[name] = content
	}
	report, err := k.sanitizer.Sanitize(ctx, launch, c, arrays...)
	if err != nil {
		return fail(err)
	}
	r := &SanitizeReport{Report: report}
	for _, o := range report.Outputs {
		r.Outputs = append(r.Outputs, fromArray(o))
	}
	return r, nil
}

// checkText returns an error if the source that package sanitizer generates without MLX differs from MLX's.
func (k *Kernel) checkText(l Launch, launch sanitizer.Launch, inputs []*mlxc.Array, arrays []sanitizer.Array) error {
	text, err := k.sanitizer.MetalSource(launch, arrays...)
	if err != nil {
		return err
	}
	generated, err := k.generate(k.withDefaults(l), inputs)
	if err != nil {
		return err
	}
	if text != generated {
		return fmt.Errorf("MLX %s generates another source than package sanitizer, which supports MLX %s",
			mlxc.Version(), sanitizer.MLXVersion)
	}
	return nil
}
