package ops

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/customkernels"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// Errors of this package and of customkernels name the calling line, and name the package once.
func TestErrorsNameTheCaller(t *testing.T) {
	x, w := mlxc.Ones(mlxc.Float32, 2, 3), mlxc.Ones(mlxc.Float32, 4)
	bad := x.Add(w)
	_, _, line, _ := runtime.Caller(0)
	err := customkernels.Constants[float32]().Err()
	for name, c := range map[string]struct {
		err  error
		line int
	}{
		"ops":             {RMSNorm(x, w, 1e-5).Err(), line + 6},
		"carried through": {RMSNorm(bad, nil, 1e-5).Err(), line - 1},
		"customkernels":   {err, line + 1},
	} {
		require.Error(t, c.err, name)
		require.Contains(t, c.err.Error(), fmt.Sprintf(" (at ops/errorcaller_test.go:%d)", c.line), name)
		require.Equal(t, 1, strings.Count(c.err.Error(), "mlxc:"), c.err)
		require.Equal(t, 1, strings.Count(c.err.Error(), " (at "), c.err)
	}
}
