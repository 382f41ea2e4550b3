package customkernels

import (
	"context"
	"fmt"
	"os"

	"github.com/mlxgrad/mlxgrad/customkernels/sanitizer"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// checkedVariable is the environment variable that makes Launch check every launch.
const checkedVariable = "MLXGRAD_CHECKED"

// checked runs a launch under the checker if MLXGRAD_CHECKED is set. The error is the first error that the checker
// finds, or says why the launch cannot be checked.
func (k *Kernel) checked(l Launch, inputs []*mlxc.Array) error {
	if value := os.Getenv(checkedVariable); value == "" || value == "0" {
		return nil
	}
	report, err := k.Sanitize(context.Background(), l, sanitizer.Config{}, inputs...)
	if err != nil {
		return fmt.Errorf("%s: the launch of %s cannot be checked; the inputs have no values in a compiled, exported or "+
			"vectorized function, and MLX_DISABLE_COMPILE=1 makes MLX call compiled functions as they are: %w",
			checkedVariable, k.name, err)
	}
	if found := report.Errors(); len(found) > 0 {
		return fmt.Errorf("%s: %v", checkedVariable, found[0])
	}
	return nil
}
