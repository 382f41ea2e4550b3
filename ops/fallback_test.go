package ops

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/customkernels"
	"github.com/mlxgrad/mlxgrad/internal/mlxtest"
	"github.com/mlxgrad/mlxgrad/internal/recipe"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// withoutCompiler hides the C++ compiler until the test ends. It forgets recorded graphs, which would still be
// used.
func withoutCompiler(t *testing.T) {
	t.Helper()
	t.Setenv("CXX", "/nonexistent/compiler")
	recipe.Forget()
}

// Without a C++ compiler at run time, operations use MLX's gradient and log one warning.
func TestMLXsGradientWithoutCompiler(t *testing.T) {
	var log bytes.Buffer
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
	defer slog.SetDefault(before)
	warnOnce = sync.Once{}
	withoutCompiler(t)

	x, w, dy := normal(1, mlxc.Float32, 3, 50), normal(2, mlxc.Float32, 50), normal(3, mlxc.Float32, 3, 50)
	_, want, err := mlxc.VJP(norm(true, 1e-5, mlxc.RMSNorm), arrays{x, w}, arrays{dy})
	require.NoError(t, err)
	launches := customkernels.LaunchCount()
	for range 2 {
		_, got, err := mlxc.VJP(norm(true, 1e-5, RMSNorm), arrays{x, w}, arrays{dy})
		require.NoError(t, err)
		require.Equal(t, mlxtest.Floats(t, want[0]), mlxtest.Floats(t, got[0]))
		require.Equal(t, mlxtest.Floats(t, want[1]), mlxtest.Floats(t, got[1]))
	}
	require.Equal(t, launches, customkernels.LaunchCount())
	require.Equal(t, 1, strings.Count(log.String(), "using MLX's own gradients"))
	require.Contains(t, log.String(), "no C++ compiler")
}

// A compiler that fails makes the results invalid, also for heads that are padded.
func TestAttentionWithFailingCompiler(t *testing.T) {
	compiler := filepath.Join(t.TempDir(), "g++")
	const script = "#!/bin/sh\n[ \"$1\" = --version ] && echo 'g++ 12.0.0' && exit\n" +
		"echo 'x.cpp:1:1: error: no' >&2\nexit 1\n"
	require.NoError(t, os.WriteFile(compiler, []byte(script), 0o755))
	t.Setenv("CXX", compiler)
	t.Setenv("MLXGRAD_CACHE", t.TempDir())
	q, v := normal(1, mlxc.BFloat16, 1, 1, 3, 212), normal(2, mlxc.BFloat16, 1, 1, 3, 204)
	out, lse := AttentionLogSumExp(q, q, v, AttentionConfig{})
	require.ErrorContains(t, out.Err(), "does not compile")
	require.ErrorContains(t, lse.Err(), "does not compile")
}
