// Package valuetest tests the values that mlxc computes: one value test for each bound function of mlx-c, tests of
// random combinations of options, and edge cases.
package valuetest

import (
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/internal/testdevice"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// valueTests holds the value tests by the C name of the function of mlx-c. A value test calls the function through
// mlxc and compares the result with Go's arithmetic, constants or an identity. A test of mlxc/internal/generate
// requires a value test for every bound function.
var valueTests = map[string][]func(t *testing.T){}

// value adds a value test of one function of mlx-c. Test files call it from init functions.
func value(name string, f func(t *testing.T)) { valueTests[name] = append(valueTests[name], f) }

func TestValues(t *testing.T) {
	testdevice.CPUOnly(t, "compares with float64 in Go, with tolerances for MLX's CPU backend")
	require.NotEmpty(t, valueTests)
	for _, name := range slices.Sorted(maps.Keys(valueTests)) {
		t.Run(name, func(t *testing.T) {
			for _, f := range valueTests[name] {
				mlxc.WithScope(func() { f(t) })
			}
		})
	}
}
