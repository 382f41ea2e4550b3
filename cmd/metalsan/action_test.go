package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/internal/skip"
)

// runAction runs the script of the action in a folder, and returns its output and exit code.
func runAction(t *testing.T, dir, files, flags, sarif string) (output string, code int) {
	t.Helper()
	script, err := filepath.Abs("action.sh")
	require.NoError(t, err)
	cmd := exec.Command(script)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "RUNNER_OS=Linux", "FILES="+files, "FLAGS="+flags, "SARIF="+sarif)
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		require.NoError(t, err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

func TestAction(t *testing.T) {
	skip.Program(t, skip.Go)
	t.Setenv("RUNNER_TEMP", t.TempDir())
	good, err := os.ReadFile("../../examples/softmax.metal")
	require.NoError(t, err)
	lines := strings.SplitAfter(string(good), "\n")
	racy := strings.Join(append(lines[:41:41], lines[42:]...), "") // without the first barrier

	dir := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "deep", "er"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "deep", "er", "good one.metal"), good, 0o600))
	output, code := runAction(t, dir, "**/*.metal", "--strict --schedules 2", "")
	require.Equal(t, 0, code, output)
	require.Contains(t, output, "1 kernel, 3 launches, 0 errors")
	require.Contains(t, output, "::add-matcher::")

	require.NoError(t, os.WriteFile(filepath.Join(dir, "racy.metal"), []byte(racy), 0o600))
	output, code = runAction(t, dir, "racy.metal deep/**/*.metal", "", "out.sarif")
	require.Equal(t, 1, code, output)
	require.Contains(t, output, "racy.metal:40: error: race: ")
	require.Contains(t, output, "::remove-matcher owner=metalsan-error::")
	sarif, err := os.ReadFile(filepath.Join(dir, "out.sarif"))
	require.NoError(t, err)
	require.Contains(t, string(sarif), `"ruleId": "race"`)

	output, code = runAction(t, dir, "none/*.metal", "", "")
	require.Equal(t, 1, code)
	require.Contains(t, output, "::error::no file matches none/*.metal")
}

// The action gives its inputs to the script in the environment: an expression inside of a script could inject
// commands.
func TestActionPassesInputsInTheEnvironment(t *testing.T) {
	text, err := os.ReadFile("../../action.yml")
	require.NoError(t, err)
	for _, name := range []string{"files", "flags", "sarif"} {
		require.Contains(t, string(text), "\n  "+name+":\n")
		require.Contains(t, string(text), "\n        "+strings.ToUpper(name)+": ${{ inputs."+name+" }}\n")
	}
	require.Equal(t, 3, strings.Count(string(text), "${{"))
	require.Contains(t, string(text), `run: '"$GITHUB_ACTION_PATH/cmd/metalsan/action.sh"'`)
}
