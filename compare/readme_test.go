package compare

import (
	"fmt"
	"go/format"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/mlxc"
)

// README.md says how many rows the report has on a CPU: for each operation in all dtypes and in one, for all
// together, and in the sample.
func TestReadmeCountsRows(t *testing.T) {
	text, err := os.ReadFile("../README.md")
	require.NoError(t, err)
	labels := [][]string{ // As the tables group them.
		{"rmsnorm"},
		{"rmsnorm-separate"},
		{"layernorm"},
		{"layernorm-separate"},
		{"rmsnorm-residual", "add-rmsnorm"},
		{"softmax"},
		{"transpose2d"},
		{"embedding", "embedding-sparse"},
		{"cross-entropy"},
		{"linear-cross-entropy"},
		{"attention"},
		{"causal-attention"},
	}
	rows, all, sample := map[string]int{}, 0, 0
	require.NoError(t, mlxc.WithDevice(mlxc.CPU, func() {
		for _, op := range Ops() {
			for _, c := range op.Cases {
				rows[op.Name] += len(c.targets(mlxc.Float32))
			}
			all += rows[op.Name] * len(DTypes())
		}
		sample = CountRows(Sample(Ops()), DTypes())
	}))
	var inAll, inOne []string
	for _, label := range labels {
		var three, one []string
		for _, op := range label {
			three, one = append(three, strconv.Itoa(len(DTypes())*rows[op])), append(one, strconv.Itoa(rows[op]))
			delete(rows, op)
		}
		inAll, inOne = append(inAll, strings.Join(three, ", ")), append(inOne, strings.Join(one, ", "))
	}
	require.Empty(t, rows, "the tables have every operation")
	// The last column of the first table, and the second of the second.
	require.Equal(t, inAll, cells(text, "(?m)^\\| `[A-Z].* \\| ([0-9, ]+) \\|$"))
	require.Equal(t, inOne, cells(text, "(?m)^\\| `[A-Z][^|]* \\| ([0-9, ]+) \\|.*\\| not yet \\|$"))
	require.Contains(t, string(text), fmt.Sprintf("%d,%03d report rows pass", all/1000, all%1000))
	require.Contains(t, string(text), fmt.Sprintf("%d,%03d of the %d,%03d report rows", sample/1000, sample%1000, all/1000, all%1000))
}

// The first Go block of README.md is a program that prints the first text block.
func TestReadmeExample(t *testing.T) {
	text, err := os.ReadFile("../README.md")
	require.NoError(t, err)
	program, output := cells(text, "(?ms)^```go\n(.*?)^```$"), cells(text, "(?ms)^```text\n(.*?)^```$")
	require.NotEmpty(t, program)
	require.NotEmpty(t, output)
	file := filepath.Join(t.TempDir(), "main.go")
	require.NoError(t, os.WriteFile(file, []byte(program[0]), 0o600))
	// Imports are those of this module, in whose folder it runs.
	command := exec.CommandContext(t.Context(), "go", "run", file)
	var messages strings.Builder // with an empty cache, a line tells that kernels are compiled
	command.Stderr = &messages
	got, err := command.Output()
	require.NoError(t, err, "%s%s", got, &messages)
	require.Equal(t, output[0], string(got))

	formatted, err := format.Source([]byte(program[0]))
	require.NoError(t, err)
	require.Equal(t, program[0], string(formatted))
}

// cells are what the pattern captures.
func cells(text []byte, pattern string) []string {
	var found []string
	for _, m := range regexp.MustCompile(pattern).FindAllSubmatch(text, -1) {
		found = append(found, string(m[1]))
	}
	return found
}
