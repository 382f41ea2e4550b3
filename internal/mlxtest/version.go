package mlxtest

import (
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/mod/semver"

	"github.com/mlxgrad/mlxgrad/mlxc"
)

// AtLeast reports whether the loaded MLX has this version, such as "0.32.4", or a later one.
func AtLeast(version string) bool { return semver.Compare("v"+mlxc.Version(), "v"+version) >= 0 }

// Needs reports whether the loaded MLX is new enough for a function that the given version introduced. If it is not,
// Needs requires each result to have an error that names the version.
func Needs(t testing.TB, version string, results ...*mlxc.Array) bool {
	t.Helper()
	if AtLeast(version) {
		return true
	}
	for _, r := range results {
		require.ErrorContains(t, r.Err(), "it needs MLX "+version+" or later; the loaded MLX is "+mlxc.Version())
	}
	return false
}
