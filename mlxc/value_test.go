package mlxc_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/internal/testdevice"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// valueTests check what the functions of mlx-c compute, as they are reached through this
// package: against Go's arithmetic, values written down, or an identity. The test of the
// generator wants one for every bound function, by its name in C.
var valueTests = map[string][]func(t *testing.T){}

// value adds a test of one function. Test files call it from init.
func value(name string, f func(t *testing.T)) { valueTests[name] = append(valueTests[name], f) }

func TestValues(t *testing.T) {
	testdevice.CPUOnly(t, "compares with results of Go, as exact as those of MLX's backend for CPUs")
	require.NotEmpty(t, valueTests)
	for _, name := range slices.Sorted(maps.Keys(valueTests)) {
		t.Run(name, func(t *testing.T) {
			for _, f := range valueTests[name] {
				mlxc.WithScope(func() { f(t) })
			}
		})
	}
}
