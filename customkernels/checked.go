package customkernels

import (
	"context"
	"fmt"

	"github.com/mlxgrad/mlxgrad/customkernels/sanitizer"
	"github.com/mlxgrad/mlxgrad/internal/checked"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// checked runs a launch under the checker if MLXGRAD_CHECKED is set. The error is the first error that the checker
// finds, or says why the launch cannot be checked.
func (k *Kernel) checked(l Launch, inputs []*mlxc.Array) error {
	if !checked.Enabled() {
		return nil
	}
	report, err := k.Sanitize(context.Background(), l, sanitizer.Config{}, inputs...)
	if err != nil {
		return fmt.Errorf("%s: the launch of %s cannot be checked; the inputs have no values in a compiled, exported or "+
			"vectorized function, and MLX_DISABLE_COMPILE=1 makes MLX call compiled functions as they are: %w",
			checked.Variable, k.name, err)
	}
	if found := report.Errors(); len(found) > 0 {
		return fmt.Errorf("%s: %v", checked.Variable, found[0])
	}
	return nil
}
