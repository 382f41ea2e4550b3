package docs

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/compare/suite"
)

var update = flag.Bool("update", false, "write the generated figures and pages")

// The generated files are current: go test ./internal/docs -run Generated -update writes them.
func TestGeneratedFiles(t *testing.T) {
	generated, err := generate(root)
	require.NoError(t, err)
	for path, content := range generated {
		path = filepath.Join(root, path)
		if *update {
			require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
			require.NoError(t, os.WriteFile(path, content, 0o644))
		}
		present, err := os.ReadFile(path)
		require.NoError(t, err)
		require.True(t, string(content) == string(present), "%s is not current", path)
	}
	// Files that are no longer generated would stay unnoticed.
	for _, pattern := range []string{"docs/img/*.svg", "docs/ops/*.md"} {
		present, err := filepath.Glob(filepath.Join(root, pattern))
		require.NoError(t, err)
		for _, path := range present {
			name, err := filepath.Rel(root, path)
			require.NoError(t, err)
			require.Contains(t, generated, filepath.ToSlash(name))
		}
	}
}

// The README of each folder of figures has a row for each file, with the command that wrote it.
func TestFilesOfFiguresHaveCommands(t *testing.T) {
	for _, folder := range []string{"docs/cpu", "docs/h200"} {
		table, err := os.ReadFile(filepath.Join(root, folder, "README.md"))
		require.NoError(t, err)
		paths, err := filepath.Glob(filepath.Join(root, folder, "*.csv"))
		require.NoError(t, err)
		require.NotEmpty(t, paths, folder)
		for _, path := range paths {
			require.Regexp(t, "(?m)^\\| `"+regexp.QuoteMeta(filepath.Base(path))+"` \\|.*`.*(mlxgrad (bench|parity)|bench_torch.py)", string(table))
		}
	}
}

// Every operation of package ops, and every operation of the comparison, has a page.
func TestEveryOperationHasAPage(t *testing.T) {
	var functions, suites []string
	for _, o := range operations {
		functions, suites = append(functions, o.functions...), append(suites, o.suites...)
	}
	s, err := readSources(root)
	require.NoError(t, err)
	for _, f := range s.pkg.Funcs {
		if f.Name != "KernelLaunches" { // it is for tools
			require.Contains(t, functions, f.Name)
		}
	}
	for _, op := range suite.Ops() {
		if !strings.HasSuffix(op.Name, "-separate") { // variants for comparisons
			require.Contains(t, suites, op.Name)
		}
	}
}
