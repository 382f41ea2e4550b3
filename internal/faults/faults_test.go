package faults_test

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/internal/faults"
	"github.com/mlxgrad/mlxgrad/internal/long"
	"github.com/mlxgrad/mlxgrad/internal/mlxtest"
)

var update = flag.Bool("update", false, "write docs/mlx-faults.md")

const page = "../../docs/mlx-faults.md"

func TestPage(t *testing.T) {
	text, err := faults.Page()
	require.NoError(t, err)
	if *update {
		require.NoError(t, os.WriteFile(page, []byte(text), 0o644))
	}
	committed, err := os.ReadFile(page)
	require.NoError(t, err)
	require.Equal(t, text, string(committed), "run go generate ./internal/faults")
}

// Every fault has a snippet, and a guard that names the fault. Every snippet belongs to a fault.
func TestTable(t *testing.T) {
	files, err := filepath.Glob("snippets/*.py")
	require.NoError(t, err)
	files = slices.DeleteFunc(files, func(f string) bool { return f == filepath.Join("snippets", "try.py") })
	require.Len(t, files, len(faults.All()))
	seen := map[string]bool{}
	for _, f := range faults.All() {
		require.False(t, seen[f.Name], f.Name)
		seen[f.Name] = true
		require.Contains(t, files, filepath.Join("snippets", f.Name+".py"))
		require.NotEmpty(t, f.Guards, f.Name)
		if f.Gone != "" {
			require.Contains(t, faults.Checked[1:], f.Gone, f.Name)
		}
		named := false
		for _, g := range f.Guards {
			text, err := os.ReadFile(filepath.Join("..", "..", g.File))
			require.NoError(t, err)
			require.Contains(t, string(text), g.Func, f.Name)
			named = named || strings.Contains(string(text), f.Name)
		}
		require.True(t, named, "no guard names the fault %s", f.Name)
	}
}

// The snippets find the faults of the table in every checked version of MLX, which pip installs into a folder of the test.
func TestSnippets(t *testing.T) {
	long.Only(t, "installs three versions of MLX with pip and runs every snippet")
	for _, version := range faults.Checked {
		t.Run(version, func(t *testing.T) {
			python := mlxtest.Python(t, version)
			out, err := exec.CommandContext(t.Context(), python, "snippets/try.py").Output()
			require.NoError(t, err, "%s", out)
			states := map[string]string{}
			for line := range strings.Lines(string(out)) {
				fields := strings.Split(strings.TrimSpace(line), "\t")
				states[fields[0]] = fields[1]
			}
			for _, f := range faults.All() {
				require.Contains(t, states, f.Name)
				require.Equal(t, f.In(version), states[f.Name] != "gone", "%s: %s", f.Name, states[f.Name])
			}
		})
	}
}
