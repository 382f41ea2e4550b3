// Package memorylimit sets MLX's memory limit from the environment, for machines with little memory, such as hosted
// runners. The command mlxgrad and the tests use it. Programs call [mlxc.SetMemoryLimit].
package memorylimit

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/mlxgrad/mlxgrad/mlxc"
)

// Variable is the environment variable that holds the limit, such as 512MiB or 3GiB.
const Variable = "MLXGRAD_MEMORY_LIMIT"

// FromEnvironment sets MLX's memory limit to the value of MLXGRAD_MEMORY_LIMIT. If the variable is unset or empty,
// it does nothing.
func FromEnvironment() error {
	text := os.Getenv(Variable)
	if text == "" {
		return nil
	}
	bytes, err := parse(text)
	if err != nil {
		return err
	}
	if mlxc.Check() != nil {
		return nil // there is no MLX to limit; the first operation returns the reason
	}
	_, err = mlxc.SetMemoryLimit(bytes)
	return err
}

// parse returns a limit in bytes.
func parse(text string) (int, error) {
	for suffix, unit := range map[string]int{"MiB": 1 << 20, "GiB": 1 << 30} {
		digits, found := strings.CutSuffix(text, suffix)
		if !found {
			continue
		}
		if n, err := strconv.ParseInt(digits, 10, 32); err == nil && n > 0 {
			return int(n) * unit, nil
		}
	}
	return 0, fmt.Errorf("%s is %q; it must be a positive whole number of MiB or GiB, such as 3GiB", Variable, text)
}
