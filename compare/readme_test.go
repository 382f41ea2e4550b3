package compare

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/mlxc"
)

// README.md says how many rows the report has on a CPU: of each operation in all dtypes and in one, and of
// all together.
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
	rows, all := map[string]int{}, 0
	require.NoError(t, mlxc.WithDevice(mlxc.CPU, func() {
		for _, op := range Ops() {
			for _, c := range op.Cases {
				rows[op.Name] += len(c.targets(mlxc.Float32))
			}
			all += rows[op.Name] * len(DTypes())
		}
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
}

// cells are what the pattern captures.
func cells(text []byte, pattern string) []string {
	var found []string
	for _, m := range regexp.MustCompile(pattern).FindAllSubmatch(text, -1) {
		found = append(found, string(m[1]))
	}
	return found
}
