package main

import (
	"bytes"
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
	cmd.Env = append(os.Environ(), "RUNNER_OS=Linux", "GITHUB_ACTIONS=true", "FILES="+files, "FLAGS="+flags, "SARIF="+sarif)
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		require.NoError(t, err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

// The action annotates the bugs of a small repository, and writes them as valid SARIF.
func TestAction(t *testing.T) {
	skip.Program(t, skip.Go)
	t.Setenv("RUNNER_TEMP", t.TempDir())
	good, err := os.ReadFile("../../examples/softmax.metal")
	require.NoError(t, err)
	lines := strings.SplitAfter(string(good), "\n")
	racy := strings.Join(append(lines[:41:41], lines[42:]...), "") // without the first barrier
	header := "// launch: grid=8 threadgroup=8 y=out:float32[8]\n"

	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	write("deep/er/good one.metal", string(good))
	output, code := runAction(t, dir, ".", "--strict --schedules 2", "")
	require.Equal(t, 0, code, output)
	require.Contains(t, output, "1 kernel, 3 launches, 0 errors")
	require.NotContains(t, output, "::error")

	write("racy.metal", racy)
	write("wrong, type.metal", header+"kernel void wrong(device float* y, uint i [[thread_position_in_grid]]) {\n"+
		"  y[i] = undeclared;\n}\n")
	write("lost.metal", "#include \"lost.h\"\n")
	write("accepted.metal", header+
		"// metalsan: allow unwritten-output: a test\nkernel void accepted(device float* y) {\n"+
		"  y[0] = 1; // metalsan: allow same-value-write: a test\n}\n")
	output, code = runAction(t, dir, "*.metal deep/**/*.metal", "", "out.sarif")
	require.Equal(t, 1, code, output)
	require.Contains(t, output, "racy.metal:40:23: error: race: ")
	require.Contains(t, output, "\n::error file=racy.metal,line=40,col=23,title=race::thread ")
	require.Contains(t, output, "\n::warning file=racy.metal,line=43,col=18,title=lockstep::thread ")
	require.Contains(t, output, "\n::error file=wrong%2C type.metal,line=3,col=10,title=not run::not run (wrong, ")
	require.Contains(t, output, "\n::error file=lost.metal,line=1,col=10,title=not run::\"lost.h\" cannot be read")
	require.NotContains(t, output, "file=accepted.metal")
	text, err := os.ReadFile(filepath.Join(dir, "out.sarif"))
	require.NoError(t, err)
	sarif := string(text)
	for _, part := range []string{
		`"ruleId": "race"`, `"uri": "racy.metal"`, `"startColumn": 23`, `"justification": "a test"`, `"uri": "lost.metal"`,
		`"executionSuccessful": false`,
	} {
		require.Contains(t, sarif, part)
	}
	check := exec.Command("go", "run", "./sarifcheck")
	check.Dir, check.Stdin = "../../tools", bytes.NewReader(text)
	out, err := check.CombinedOutput()
	require.NoError(t, err, "%s", out)

	output, code = runAction(t, dir, "none/*.metal", "", "")
	require.Equal(t, 2, code)
	require.Contains(t, output, "none/*.metal: there is no shader file")
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
