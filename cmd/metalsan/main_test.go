package main

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/internal/cli/manual"
	"github.com/mlxgrad/mlxgrad/internal/skip"
)

var update = flag.Bool("update", false, "rewrite the man page")

func TestHelp(t *testing.T) {
	manual.RequireExamples(t, newCommand())
	manual.RequireCurrent(t, newCommand(), filepath.Join("..", "..", "docs", "man"), *update)
}

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"metalsan": main})
}

func TestScripts(t *testing.T) {
	cache, err := os.UserCacheDir()
	require.NoError(t, err)
	if dir := os.Getenv("MLXGRAD_CACHE"); dir != "" {
		cache = dir
	} else {
		cache = filepath.Join(cache, "mlxgrad")
	}
	root, err := filepath.Abs(filepath.Join("..", ".."))
	require.NoError(t, err)
	testscript.Run(t, testscript.Params{
		Dir: "testdata",
		Setup: func(env *testscript.Env) error {
			env.Setenv("MLXGRAD_CACHE", cache) // kernels are compiled once
			env.Setenv("ROOT", root)
			env.Setenv("CXX", os.Getenv("CXX"))
			return nil
		},
	})
}

// The command needs neither MLX nor cgo: it imports no package of this module with C or C++ files.
func TestNeedsNeitherMLXNorCgo(t *testing.T) {
	cmd := exec.Command(skip.Program(t, skip.Go), "list", "-deps", "-f", "{{.ImportPath}} {{len .CgoFiles}}", ".")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	require.NoError(t, err)
	const module = "github.com/mlxgrad/mlxgrad/"
	seen := 0
	for line := range strings.Lines(string(out)) {
		name, cgo, _ := strings.Cut(strings.TrimSpace(line), " ")
		if !strings.HasPrefix(name, module) {
			continue
		}
		seen++
		require.Equal(t, "0", cgo, "%s uses cgo", name)
		require.NotContains(t, []string{module + "mlxc", module +
			"customkernels", module + "customkernels/internal/executor"}, name)
	}
	require.Greater(t, seen, 5)
}
