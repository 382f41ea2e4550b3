package docs

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/mlxgrad/mlxgrad/internal/long"
	"github.com/mlxgrad/mlxgrad/internal/skip"
)

const root = "../.."

// The navigation of the site has every page of docs once.
func TestNavigation(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "mkdocs.yml"))
	require.NoError(t, err)
	var config struct{ Nav yaml.Node }
	require.NoError(t, yaml.Unmarshal(text, &config))
	var listed, existing []string
	var collect func(n *yaml.Node)
	collect = func(n *yaml.Node) {
		if n.Kind == yaml.ScalarNode && strings.HasSuffix(n.Value, ".md") {
			listed = append(listed, "docs/"+n.Value)
		}
		for _, c := range n.Content {
			collect(c)
		}
	}
	collect(&config.Nav)
	for _, p := range pages(t) {
		if strings.HasPrefix(p.path, "docs/") {
			existing = append(existing, p.path)
		}
	}
	require.ElementsMatch(t, existing, listed, "list each page in the section nav of mkdocs.yml")
}

// The site builds, which checks its links, and Chromium shows every page on a phone and on a desktop without an error
// of the console.
func TestSite(t *testing.T) {
	long.Only(t, "installs the generator and opens every page in Chromium")
	skip.Browser(t)
	out, err := exec.Command(filepath.Join(root, "build.sh"), "docs").CombinedOutput()
	require.NoError(t, err, "%s", out)
	for _, scheme := range [][]string{nil, {"-dark"}} {
		args := append([]string{"-C", filepath.Join(root, "tools"), "run", "./pagecheck", "-at", "/mlxgrad/"}, scheme...)
		out, err = exec.Command("go", append(args, "../site")...).CombinedOutput()
		require.NoError(t, err, "%s", out)
		require.Contains(t, string(out), " at 2 widths: 0 problems")
	}
}
