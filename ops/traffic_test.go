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

// A trafficCase is an operation whose traffic, in the geometry of Apple GPUs, is held
// to a limit. Compulsory is what must cross once, in elements of T: what is read and
// written, without what is small.
type trafficCase struct {
	name       string
	dtype      mlxc.DType
	run        func(on launcher, dtype mlxc.DType)
	compulsory int
	limit      float64
	// elsewhere is compulsory traffic that is not in T, in bytes.
	elsewhere int
}

// trafficCases are the operations at the three sizes that matter: many more rows than
// threadgroups, few rows, and rows that a threadgroup cannot hold.
func trafficCases() []trafficCase {
	type rowOp struct {
		name          string
		moved         int // arrays of x's size
		run           func(on launcher, in rowInputs)
		many, few, by float64 // limits; by for wide rows
	}
	var cases []trafficCase
	for _, op := range []rowOp{
		{"RMSNorm backward", 3, func(on launcher, in rowInputs) {
			rmsNormBackward(on, in.x, in.weight, in.dy, caseEps)
		}, 1.10, 1.35, 1.75},
		{"AddRMSNorm backward", 4, func(on launcher, in rowInputs) {
			rmsNormBackwardWithSum(on, in.x, in.weight, in.dy, in.normal(4, in.x.Shape()...), caseEps)
		}, 1.10, 1.35, 1.75},
		{"RMSNorm backward, separate", 3, func(on launcher, in rowInputs) {
			rmsNormBackwardSeparate(on, in.x, in.weight, in.dy, caseEps)
		}, 2.05, 2.05, 3.05},
		{"RMSNormResidual forward", 3, func(on launcher, in rowInputs) {
			residualForward(on, "rms_norm_residual", 1, []*mlxc.Array{in.x, in.dy, in.weight}, caseEps)
		}, 1.10, 1.10, 1.75},
		{"AddRMSNorm forward", 4, func(on launcher, in rowInputs) {
			residualForward(on, "add_rms_norm", 2, []*mlxc.Array{in.x, in.dy, in.weight}, caseEps)
		}, 1.10, 1.10, 1.75},
		{"LayerNorm backward", 3, func(on launcher, in rowInputs) {
			layerNormBackward(on, in.x, in.weight, in.weight, in.dy, caseEps)
		}, 1.10, 1.35, 1.75},
		{"LayerNorm backward, separate", 3, func(on launcher, in rowInputs) {
			layerNormBackwardSeparate(on, in.x, in.weight, in.weight, in.dy, caseEps)
		}, 1.72, 1.73, 2.60},
	} {
		for _, dtype := range gradientDTypes {
			for _, size := range []struct {
				rows, width int
				limit       float64
			}{{16384, 128, op.many}, {199, 4096, op.few}, {256, 16384, op.by}} {
				if size.rows*size.width > 1<<20 && !long.Enabled() && dtype != mlxc.Float16 {
					continue
				}
				cases = append(cases, trafficCase{
					name:  fmt.Sprintf("%s, %dx%d", op.name, size.rows, size.width),
					dtype: dtype,
					run: func(on launcher, dtype mlxc.DType) {
						normal := func(seed uint64, shape ...int) *mlxc.Array {
							return mlxc.RandomNormal(mlxc.RandomKey(seed), dtype, shape...)
						}
						op.run(on, rowInputs{
							x: normal(1, size.rows, size.width), dy: normal(2, size.rows, size.width),
							weight: normal(3, size.width), normal: normal,
						})
					},
					compulsory: op.moved * size.rows * size.width,
					limit:      size.limit,
				})
			}
		}
	}
	return cases
}

// The kernels move little more than they must, and no more than they did: what the
// threads issue, divided by what must cross once, is below the limit of the case and not
// above the figure of the committed table, if that is of the same compiler.
func TestTraffic(t *testing.T) {
	known, compiler := readTraffic(t)
	var lines []string
	for _, c := range trafficCases() {
		t.Run(fmt.Sprintf("%s/%v", c.name, c.dtype), func(t *testing.T) {
			issued, by := issuedBytes(t, c)
			ratio := float64(issued) / float64(c.compulsory*c.dtype.Size()+c.elsewhere)
			t.Logf("%.3f of %.2f", ratio, c.limit)
			require.LessOrEqual(t, ratio, c.limit)
			if compiler == by {
				if before, ok := known[c.name+"/"+c.dtype.String()]; ok && !*updateTraffic {
					require.LessOrEqual(t, ratio, before+0.0005, "it was %.3f: if more is right, run with -long -update", before)
				}
			}
			compilerOf = by
			lines = append(lines, fmt.Sprintf("| %s | %v | %.3f | %.2f |", c.name, c.dtype, ratio, c.limit))
		})
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
// our kernels declare inputs before outputs.
func issuedBytes(t *testing.T, c trafficCase) (issued uint64, compiler string) {
	on := launcher{device: apple}
	on.instead = func(k *customkernels.Kernel, l customkernels.Launch, inputs []*mlxc.Array) []*mlxc.Array {
		r, err := k.Sanitize(t.Context(), l, customkernels.SanitizeConfig{Schedules: 1, Timeout: 5 * time.Minute}, inputs...)
		require.NoError(t, err)
		require.Empty(t, r.Findings)
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
	require.NoError(t, mlxc.WithDevice(mlxc.CPU, func() { c.run(on, c.dtype) }))
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
		if len(cells) != 6 {
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
cross once, in the geometry of Apple GPUs, and the limit that a test holds it to. Written
by ` + "`go test ./ops -run 'TestTraffic$' -long -update`" + `; the figures depend on what the
compiler makes of the shaders.

Compiler: ` + compilerOf + `

| operation | dtype | issued ÷ compulsory | limit |
|---|---|---|---|
` + strings.Join(lines, "\n") + "\n"
	require.NoError(t, os.MkdirAll(filepath.Dir(trafficFile), 0o755))
	require.NoError(t, os.WriteFile(trafficFile, []byte(text), 0o644))
}
