package customkernels

import (
	"errors"
	"fmt"

	"github.com/mlxgrad/mlxgrad/mlxc"
)

// check returns an error if an array or the launch is invalid, or if MLX cannot express the launch.
func (k *Kernel) check(l Launch, inputs []*mlxc.Array) error {
	if err := k.checkArguments(l, inputs); err != nil {
		return err
	}
	launch, arrays := toLaunch(l), toArrays(inputs)
	err := k.sanitizer.Check(launch, arrays...)
	if err == nil {
		reason := k.sanitizer.UnsupportedByMLX(launch, arrays...)
		if reason == "" {
			return nil
		}
		err = fmt.Errorf("MLX's custom kernels do not support this launch, which Sanitize can still check: %s", reason)
	}
	return mlxc.NewError(k.name, err, inputs...)
}

// checkArguments returns the error of the first invalid array, or an error if Products is not one of the constants.
func (k *Kernel) checkArguments(l Launch, inputs []*mlxc.Array) error {
	for i, a := range inputs {
		if err := a.Err(); err != nil {
			if carried := (*mlxc.Error)(nil); errors.As(err, &carried) {
				return err // the original error of the graph
			}
			return mlxc.NewError(k.name, fmt.Errorf("input %d: %w", i+1, err), inputs...)
		}
	}
	for name, a := range l.InOut {
		if err := a.Err(); err != nil {
			return mlxc.NewError(k.name, fmt.Errorf("the in-out buffer %s: %w", name, err), inputs...)
		}
	}
	if l.Products < DefaultProducts || l.Products > FMAProducts {
		return mlxc.NewError(k.name, fmt.Errorf("Launch.Products is %d; it must be DefaultProducts, SplitProducts, "+
			"FullSplitProducts or FMAProducts", l.Products), inputs...)
	}
	return nil
}
