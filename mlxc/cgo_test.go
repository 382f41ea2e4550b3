package mlxc_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/internal/skip"
)

// Without cgo, the first message of the compiler says how to enable it.
func TestBuildWithoutCgo(t *testing.T) {
	build := exec.Command(skip.Program(t, skip.Go), "build", ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := build.CombinedOutput()
	require.Error(t, err)
	_, errs, _ := strings.Cut(string(out), "\n") // after the package's name
	first, _, _ := strings.Cut(errs, "\n")
	require.Contains(t, first, "undefined: this_package_calls_C__set_CGO_ENABLED_to_1")
}
