package mlxheaders

import (
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/internal/mlxtest"
)

var updateMLXKernels = flag.Bool("update-mlx-kernels", false, "write docs/mlx-kernels.md")

const mlxKernelsTable = "../../../docs/mlx-kernels.md"

const mlxKernelsText = `# MLX's own Metal kernels on the host executor

The MLX package ships its Metal kernels as headers. The host executor compiles them from the installed package and
runs them on a CPU. It changes three things: includes are resolved, function constants get values, and
` + "`" + replacedHeader + "`" + ` is left out.

` + "`go test ./customkernels/internal/mlxheaders -run TestMLXKernels`" + ` compiles every kernel below. It launches the
kernels marked "agrees", with sizes that are no multiple of a tile, and compares the results with MLX's operations on
the CPU, or with a float64 computation. The tolerance is the rounding of the dtype. Agreement here does not
prove that Apple's compiler or a GPU gives the same results.

` + "`go test ./customkernels/internal/mlxheaders -run TestMLXKernelTable -update-mlx-kernels`" + ` writes this page. The
same test without the flag fails if the page is out of date, or if a header of the package is in none of its tables.
`

// notRun holds the reason why a header has no case. A key that ends in * stands for all headers whose names contain the
// rest of the key.
var notRun = map[string]string{
	replacedHeader:      "declares Metal's functions for bfloat by intrinsics of Apple's compiler; the executor's own metal_stdlib has them",
	"nax*":              "tensor operations of Metal 4 (MetalPerformancePrimitives), which the executor does not have",
	"indexing/gather.h": "a function for kernels whose signatures MLX writes at run time; it holds no kernel",
	"reduce.h":          "includes the headers of reduction/, which are read one by one",
}

// reasonNotRun returns the reason in notRun for a header, or "".
func reasonNotRun(header string) string {
	if r, ok := notRun[header]; ok {
		return r
	}
	for key, r := range notRun {
		if part, ok := strings.CutSuffix(key, "*"); ok && strings.Contains(header, part) {
			return r
		}
	}
	return ""
}

// docs/mlx-kernels.md lists all cases, and names every Metal header of the MLX package.
func TestMLXKernelTable(t *testing.T) {
	needMLXHeaders(t)
	text := mlxKernelTable(t)
	if !mlxtest.AtLeast("0.32.4") {
		return // the page describes the default MLX
	}
	if *updateMLXKernels {
		require.NoError(t, os.MkdirAll(filepath.Dir(mlxKernelsTable), 0o755))
		require.NoError(t, os.WriteFile(mlxKernelsTable, []byte(text), 0o644))
	}
	committed, err := os.ReadFile(mlxKernelsTable)
	require.NoError(t, err)
	require.Equal(t, text, string(committed), "run go test ./customkernels/internal/mlxheaders -run TestMLXKernelTable -update-mlx-kernels")
}

func mlxKernelTable(t testing.TB) string {
	var b strings.Builder
	b.WriteString(mlxKernelsText)
	b.WriteString("\n## Kernels\n\n| header | kernel | dtypes T | result |\n|---|---|---|---|\n")
	cases := headerCases(t)
	slices.SortStableFunc(cases, func(a, b headerCase) int { return strings.Compare(a.header, b.header) })
	covered, read := map[string]bool{}, map[string]bool{}
	for _, c := range cases {
		covered[c.header] = true
		_, names := flatten(t, c.headers())
		maps.Copy(read, names)
		var dtypes []string
		for _, d := range c.dtypes {
			dtypes = append(dtypes, d.String())
		}
		outcome := "agrees"
		if c.launch == nil {
			outcome = "compiles; not launched"
		}
		kernel := fmt.Sprintf("`%s<%s>`", c.kernel, strings.ReplaceAll(c.arguments, "{T}", "T"))
		for _, k := range slices.Sorted(maps.Keys(c.constants)) {
			kernel += fmt.Sprintf(", %s = %s", k, c.constants[k])
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", c.header, kernel, strings.Join(dtypes, ", "), outcome)
	}

	var helpers, others []string
	root := filepath.Join(mlxInclude, filepath.FromSlash(mlxKernels))
	require.NoError(t, filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		name, err := filepath.Rel(root, path)
		name = filepath.ToSlash(name)
		switch {
		case covered[name]:
		case read[name]:
			helpers = append(helpers, name)
		default:
			reason := reasonNotRun(name)
			require.NotEmpty(t, reason, "%s is in no case and has no reason", name)
			others = append(others, fmt.Sprintf("| %s | %s |", name, reason))
		}
		return err
	}))
	fmt.Fprintf(&b, "\n## Included headers\n\n%s.\n", strings.Join(helpers, ", "))
	fmt.Fprintf(&b, "\n## Headers without a kernel in this table\n\n| header | reason |\n|---|---|\n%s\n", strings.Join(others, "\n"))
	return b.String()
}
