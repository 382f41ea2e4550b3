package ops

import (
	"bufio"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/customkernels"
	"github.com/mlxgrad/mlxgrad/internal/long"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

var updateTraffic = flag.Bool("update", false, "write testdata/traffic.md anew")

// trafficFile is a table of what TestTraffic measured last.
const trafficFile = "testdata/traffic.md"

// The kernels move little more than they must, and no more than they did: what the
// threads issue, divided by what must cross once, is below the limit of the case and not
// above the figure of the committed table, if that is of the same compiler.
func TestTraffic(t *testing.T) {
	known, compiler := readTraffic(t)
	var lines []string
	for _, c := range trafficCases() {
		for _, dtype := range gradientDTypes {
			if dtype != mlxc.Float16 && !long.Enabled() {
				continue
			}
			t.Run(fmt.Sprintf("%s/%v", c.name, dtype), func(t *testing.T) {
				issued, by := issuedBytes(t, c, dtype)
				ratio := (float64(issued)/float64(dtype.Size()) - float64(c.again)) / float64(c.compulsory)
				t.Logf("%.3f of %.2f", ratio, c.limit)
				require.LessOrEqual(t, ratio, c.limit)
				if compiler == by {
					if before, ok := known[c.name+"/"+dtype.String()]; ok && !*updateTraffic {
						require.LessOrEqual(t, ratio, before+0.0005, "it was %.3f: if more is right, run with -long -update", before)
					}
				}
				compilerOf = by
				lines = append(lines, fmt.Sprintf("| %s | %v | %.3f | %.2f | %.2f |",
					c.name, dtype, ratio, c.limit, float64(c.again)/float64(c.compulsory)))
			})
		}
	}
	if *updateTraffic {
		require.True(t, long.Enabled(), "-update wants -long, for all cases")
		writeTraffic(t, lines)
	}
}

// compilerOf is what the last case was compiled with.
var compilerOf string

// issuedBytes runs the launches of a case in the checker, once, and adds up what they
// issue to device memory. Inputs without axes are in the constant space and not counted;
// our kernels declare inputs before outputs. In threadgroup memory no access waits for
// another's bank.
func issuedBytes(t *testing.T, c trafficCase, dtype mlxc.DType) (issued uint64, compiler string) {
	on := launcher{device: apple}
	on.instead = func(k *customkernels.Kernel, l customkernels.Launch, inputs []*mlxc.Array) []*mlxc.Array {
		r, err := k.Sanitize(t.Context(), l, customkernels.SanitizeConfig{Schedules: 1, Timeout: 5 * time.Minute}, inputs...)
		require.NoError(t, err)
		require.Empty(t, r.Findings)
		require.Zero(t, r.Traffic.BankConflicts)
		for i, b := range r.Traffic.Buffers {
			if !b.Threadgroup && (i >= len(inputs) || inputs[i].NDim() > 0) {
				issued += b.Read + b.Written
			}
		}
		// Without its path.
		_, version, _ := strings.Cut(r.Traffic.Compiler, " ")
		compiler = version + " " + r.Traffic.Flags
		return r.Outputs
	}
	require.NoError(t, mlxc.WithDevice(mlxc.CPU, func() { c.run(on, dtype) }))
	return issued, compiler
}

// readTraffic reads the committed table: the ratios by case and dtype, and the compiler
// that they are of.
func readTraffic(t *testing.T) (known map[string]float64, compiler string) {
	known = map[string]float64{}
	f, err := os.Open(trafficFile)
	if os.IsNotExist(err) {
		return known, ""
	}
	require.NoError(t, err)
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		if by, ok := strings.CutPrefix(s.Text(), "Compiler: "); ok {
			compiler = by
		}
		cells := strings.Split(s.Text(), "|")
		if len(cells) != 7 {
			continue
		}
		if ratio, err := strconv.ParseFloat(strings.TrimSpace(cells[3]), 64); err == nil {
			known[strings.TrimSpace(cells[1])+"/"+strings.TrimSpace(cells[2])] = ratio
		}
	}
	require.NotEmpty(t, known)
	return known, compiler
}

func writeTraffic(t *testing.T, lines []string) {
	text := `# Traffic

What the threads of an operation's kernels issue to device memory, divided by what must
cross once, in the geometry of Apple GPUs, and the limit that a test holds it to. Without
what is read once more while a cache has it, which the last column has, divided by the
same. Written by ` + "`go test ./ops -run 'TestTraffic$' -long -update`" + `; the figures depend
on what the compiler makes of the shaders.

Compiler: ` + compilerOf + `

| operation | dtype | issued ÷ compulsory | limit | read again |
|---|---|---|---|---|
` + strings.Join(lines, "\n") + "\n"
	require.NoError(t, os.MkdirAll(filepath.Dir(trafficFile), 0o755))
	require.NoError(t, os.WriteFile(trafficFile, []byte(text), 0o644))
}
