package mlxheaders

import (
	"maps"
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/internal/long"
	"github.com/mlxgrad/mlxgrad/internal/mlxtest"
	"github.com/mlxgrad/mlxgrad/internal/skip"
	"github.com/mlxgrad/mlxgrad/internal/testdevice"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// A headerCase is a kernel of MLX's own Metal headers, with its template arguments and function constants. {T} in the
// arguments stands for the dtype.
type headerCase struct {
	header    string
	before    []string // headers that MLX includes before header, after utils.h
	kernel    string
	arguments string
	dtypes    []mlxc.DType
	constants map[string]string
	launch    func(d mlxc.DType) headerLaunch // nil to compile only
}

// headers returns the headers to include, in order.
func (c headerCase) headers() []string {
	return slices.Concat([]string{"utils.h"}, c.before, []string{c.header})
}

// headerCases returns all cases.
func headerCases(t testing.TB) []headerCase {
	c := &corpus{mlxtest.NewSource(t, 3, 14)}
	return slices.Concat(
		c.mlxRows(), c.mlxReductions(), c.mlxProducts(), c.mlxTiles(), c.mlxMore(), c.mlxElementwise(), c.mlxNewer(),
	)
}

// needMLXHeaders skips a test if MLX's headers are not in this project's own installation.
func needMLXHeaders(t testing.TB) {
	t.Helper()
	if _, err := os.Stat(mlxInclude); err != nil {
		skip.Missing(t, skip.MLXHeaders, "run ./build.sh")
	}
}

// MLX's own Metal kernels run on the host executor and agree with MLX's operations on the CPU. A sample has the first
// case of every other header, in one dtype.
func TestMLXKernels(t *testing.T) {
	needMLXHeaders(t)
	seen := map[string]bool{}
	for i, c := range headerCases(t) {
		inSample := long.Full() || !seen[c.header] && len(seen)%2 == 0
		seen[c.header] = true
		for j, d := range c.dtypes {
			arguments := withType(c.arguments, d)
			name := c.kernel + "/" + arguments
			for _, k := range slices.Sorted(maps.Keys(c.constants)) {
				name += "/" + k
			}
			var l headerLaunch
			if c.launch != nil {
				l = c.launch(d) // even for skipped cases, so that -run does not change the random numbers
			}
			if !inSample || !long.Full() && j != i%len(c.dtypes) {
				continue
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				library, err := compileHeader(metalText(t, c.headers(), c.constants, c.kernel, arguments))
				require.NoError(t, err)
				if c.launch != nil {
					l.run(t, library)
				}
			})
		}
	}
}

func TestMain(m *testing.M) { testdevice.Main(m) }
