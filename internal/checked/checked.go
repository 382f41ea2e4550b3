// Package checked reports whether every launch of a kernel runs under the checker.
package checked

import "os"

// Variable is the environment variable that turns the checks on. It is off if it is empty or 0.
const Variable = "MLXGRAD_CHECKED"

// Enabled reports whether the checks are on.
func Enabled() bool {
	value := os.Getenv(Variable)
	return value != "" && value != "0"
}
