package compare_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/internal/skip"
)

// failureOnPage is the failure that the page about Gradients shows.
var failureOnPage = regexp.MustCompile("(?s)```text\n(--- FAIL.*?)```")

// testdata/silu is a module outside this repository, with the code of docs/checking-gradients.md. Its kernel fails with
// the page's text, and passes with the page's correction.
func TestGradientsOutsideTheRepository(t *testing.T) {
	program := skip.Program(t, skip.Go)
	root, err := filepath.Abs("..")
	require.NoError(t, err)
	page, err := os.ReadFile(filepath.Join(root, "docs", "checking-gradients.md"))
	require.NoError(t, err)
	want := failureOnPage.FindSubmatch(page)
	require.NotNil(t, want)
	requirements, err := os.ReadFile(filepath.Join(root, "go.mod"))
	require.NoError(t, err)
	sums, err := os.ReadFile(filepath.Join(root, "go.sum"))
	require.NoError(t, err)

	dir := t.TempDir()
	write := func(name, text string) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	read := func(name string) string {
		text, err := os.ReadFile(filepath.Join("testdata", "silu", name))
		require.NoError(t, err)
		return string(text)
	}
	// With all requirements of this module, Go needs no module beyond those of this module's own tests.
	write("go.mod", strings.Replace(string(requirements), "module github.com/mlxgrad/mlxgrad\n", "module example.com/silu\n", 1)+
		"\nrequire github.com/mlxgrad/mlxgrad v0.0.0\n\nreplace github.com/mlxgrad/mlxgrad => "+root+"\n")
	write("go.sum", string(sums))
	for _, name := range []string{"silu.metal", "silu.go", "silu_test.go", "loss_test.go"} {
		write(name, read(name))
	}
	require.LessOrEqual(t, strings.Count(read("silu_test.go"), "\n"), 30, "lines of the test")
	run := func(args ...string) (string, error) {
		cmd := exec.Command(program, append([]string{"test", "-mod=mod"}, args...)...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GOPROXY=off", "GOWORK=off", "GOFLAGS=-vet=off -ldflags=-w") // saves seconds
		out, err := cmd.CombinedOutput()
		return string(out), err
	}

	out, err := run()
	require.Error(t, err)
	_, failure, _ := strings.Cut(out, "--- ") // after messages about compilation
	failure, _, _ = strings.Cut("--- "+failure, "\nFAIL")
	require.Equal(t, stable(string(want[1])), stable(failure), "%s", out)

	again := regexp.MustCompile(`-run '(\S+)' -compare.case='(.*)'`).FindStringSubmatch(out)
	require.NotNil(t, again)
	out, err = run("-run", again[1], "-compare.case="+again[2])
	require.Error(t, err)
	require.Contains(t, out, "dx is wrong in float32 at d=1, rows=1:")

	write("silu.metal", read("silu_right.metal"))
	out, err = run("-run", "TestSilu", "-compare.inputs=40")
	require.NoError(t, err, "%s", out)
}

var times = regexp.MustCompile(`\(\d+\.\d+s\)`)

// stable removes the parts of a failure that differ between machines: times, and the size of rounding errors.
func stable(failure string) string {
	var lines []string
	for line := range strings.Lines(times.ReplaceAllString(failure, "")) {
		if !strings.Contains(line, "off by more than") && !strings.Contains(line, "mean error") {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	return strings.TrimSpace(strings.Join(lines, "\n"))
}
