package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var goName = regexp.MustCompile("`((?:mlxc|ops|tree|optim|mlxio|distributed|customkernels|Array)\\.[A-Z]\\w*)")

// The tables of the porting pages name functions that exist: internal/api has the exported names of each package.
func TestPortingTables(t *testing.T) {
	folders := map[string]string{
		"mlxc": "mlxc", "ops": "ops", "tree": "mlxc_tree", "optim": "mlxc_optim", "mlxio": "mlxc_mlxio",
		"distributed": "mlxc_distributed", "customkernels": "customkernels", "Array": "mlxc",
	}
	api := map[string]string{}
	for pkg, file := range folders {
		text, err := os.ReadFile(filepath.Join(root, "internal/api/testdata", file+".txt"))
		require.NoError(t, err)
		api[pkg] = string(text)
	}
	for _, page := range []string{"porting-python.md", "porting-swift.md"} {
		text, err := os.ReadFile(filepath.Join(root, "docs", page))
		require.NoError(t, err)
		names := goName.FindAllStringSubmatch(string(text), -1)
		require.NotEmpty(t, names)
		for _, m := range names {
			pkg, name, _ := strings.Cut(m[1], ".")
			declaration := `(?m)^(func|type|var|const) ` + name + `\b`
			if pkg == "Array" {
				declaration = `(?m)^func \(\w* ?\*Array\) ` + name + `\b`
			}
			require.Regexp(t, declaration, api[pkg], "%s: %s", page, m[1])
		}
	}
	text, err := os.ReadFile(filepath.Join(root, "docs/porting-python.md"))
	require.NoError(t, err)
	_, section, found := strings.Cut(string(text), "## 100 functions of arrays")
	require.True(t, found)
	section, _, _ = strings.Cut(section, "\n## ")
	require.Equal(t, 100+2, strings.Count(section, "\n|"), "with the head of the table")
}
