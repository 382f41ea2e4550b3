package suite

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/compare"
	"github.com/mlxgrad/mlxgrad/compare/oracle"
	"github.com/mlxgrad/mlxgrad/compare/report"
	"github.com/mlxgrad/mlxgrad/internal/long"
)

// Every operation passes in a sample of the cases that take little time, each operation in one dtype. A full run takes all
// of these cases in every dtype. The command parity takes all cases, and by default a sample in every dtype.
func TestParity(t *testing.T) {
	ops := Ops()
	for i := range ops {
		ops[i].Cases = slices.DeleteFunc(ops[i].Cases, large)
		require.NotEmpty(t, ops[i].Cases, ops[i].Name)
	}
	if !long.Full() {
		ops = compare.Sample(ops)
	}
	for i, op := range ops {
		var opt compare.Options
		if !long.Full() {
			opt.DTypes = compare.DTypes()[i%len(compare.DTypes()):][:1]
		}
		t.Run(op.Name, func(t *testing.T) { requireParity(t, []compare.Op{op}, opt) })
	}
}

// large reports whether an input is too large for a fast test.
func large(c compare.Case) bool {
	return slices.ContainsFunc(c.Inputs, func(in compare.Input) bool { return oracle.Size(in.Shape) > 1<<14 })
}

// The cases of every operation cover these sizes, layouts and options.
func TestCasesCover(t *testing.T) {
	for _, op := range Ops() {
		t.Run(op.Name, func(t *testing.T) {
			shapes, layouts, empty := map[string]bool{}, map[string]bool{}, false
			for _, c := range op.Cases {
				shapes[fmt.Sprint(c.Inputs[0].Shape)] = true
				layouts[string(c.Inputs[0].Layout)] = true
				empty = empty || slices.ContainsFunc(c.Inputs, func(in compare.Input) bool { return oracle.Size(in.Shape) == 0 })
			}
			require.GreaterOrEqual(t, len(shapes), 20)
			require.True(t, empty)
			requireKeys(t, layouts, "", "transposed", "strided", "sliced", "offset", "reversed", "broadcast")
		})
	}
}

func TestRowsCoverEverySize(t *testing.T) {
	ranks, rows, widths := map[int]bool{}, map[int]bool{}, map[int]bool{}
	for _, c := range rowCases() {
		rank := len(c.shape)
		ranks[rank], widths[c.shape[rank-1]] = true, true
		if rank == 2 {
			rows[c.shape[0]] = true
		}
	}
	requireKeys(t, ranks, 1, 2, 3, 4)
	requireKeys(t, rows, 0, 1, 3, 37, 199, 4099)
	requireKeys(t, widths, 1, 7, 31, 32, 33, 127, 128, 129, 1024, 4096, 4099, 8192, 16384)
}

func TestAttentionCoversEverySize(t *testing.T) {
	queries, keys, dims, groups, axes := map[int]bool{}, map[int]bool{}, map[int]bool{}, map[int]bool{}, map[string]bool{}
	options := map[string]bool{}
	for _, c := range attentionCases() {
		c = c.withDefaults()
		queries[c.queries], keys[c.keys], dims[c.dim], groups[c.heads/c.kvHeads] = true, true, true, true
		axes[map[maskKind]string{booleans: "bool ", added: "add "}[c.mask]+c.maskAxes] = true
		for name, has := range map[string]bool{
			"causal, more queries": c.causal && c.queries > c.keys && c.keys > 0,
			"causal, one query":    c.causal && c.queries == 1 && c.keys > 1,
			"another width of v":   c.valueDim != c.dim,
			"batches":              c.batch > 1,
			"sinks":                c.sinks,
			"soft-cap":             c.softCap,
			"log-sum-exp":          c.lse,
			"sinks of empty rows":  c.sinks && c.lse && c.causal && c.queries > c.keys,
			"window":               c.window != nil,
			"causal window":        c.causal && c.window != nil,
			"sequences":            c.queryStarts != nil,
			"causal sequences":     c.causal && c.queryStarts != nil,
			"all options":          c.sinks && c.softCap && c.lse && c.mask == added,
		} {
			options[name] = options[name] || has
		}
	}
	requireKeys(t, queries, 0, 1, 2, 7, 31, 33, 127, 129, 257, 1000)
	requireKeys(t, keys, 0, 1, 2, 7, 31, 33, 127, 129, 257, 1000)
	requireKeys(t, dims, 8, 16, 40, 64, 72, 80, 96, 128, 192, 256)
	requireKeys(t, groups, 1, 2, 3, 8)
	requireKeys(
		t,
		axes,
		"bool 11ij",
		"bool b11j",
		"bool h1j",
		"bool ij",
		"bool bhij",
		"add 11ij",
		"add b11j",
		"add h1j",
		"add ij",
		"add bhij",
	)
	for name, covered := range options {
		require.True(t, covered, name)
	}
}

func TestGradientsAreReproducible(t *testing.T) {
	repeat := 5
	if long.Full() {
		repeat = 20
	}
	requireParity(t, compare.Matching(Ops(), regexp.MustCompile(`^(199x127|3x4099|2x3x4x31, no w|37x33, x transposed`+
		`|199 of 33x33|8x512 of 1000x33, skewed|37x1000, none|19x33, ign, smooth, z, cap|37x33 to 33, none|19x8 to 33, sum, ign`+
		`|1x3x129x16, causal|2x8/1x33x16|2x4/2x33:129x16, causal, add h1j|1x4/2x70x16, causal, 5 seqs|1x16/8x9:13x8, sinks, cap, lse)$`)), compare.Options{Repeat: repeat})
}

// requireParity runs ops and fails with the message of every row that failed.
func requireParity(t *testing.T, ops []compare.Op, opt compare.Options) *report.Report {
	t.Helper()
	r := compare.Run(context.Background(), ops, opt)
	for _, c := range r.Rows {
		if !c.Pass {
			t.Errorf("%s %s %s %s: %s", c.Op, c.Name, c.DType, c.Output, c.Message)
		}
	}
	for _, s := range r.Suites {
		t.Logf("%s %s: ours is %.4f times as far from the truth as MLX", s.Op, s.DType, float64(s.Ratio))
		if !s.Pass {
			t.Errorf("%s %s: MLX is the more accurate on average", s.Op, s.DType)
		}
	}
	require.True(t, r.Succeeded())
	return r
}

func requireKeys[K comparable](t *testing.T, got map[K]bool, want ...K) {
	t.Helper()
	for _, k := range want {
		require.True(t, got[k], "nothing covers %v", k)
	}
}
