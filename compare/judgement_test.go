package compare

import (
	"context"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/compare/internal/accuracy"
	"github.com/mlxgrad/mlxgrad/compare/oracle"
	"github.com/mlxgrad/mlxgrad/compare/report"
	"github.com/mlxgrad/mlxgrad/internal/long"
	"github.com/mlxgrad/mlxgrad/mlxc"
	"github.com/mlxgrad/mlxgrad/ops"
)

// mistake is a way in which a result can be wrong. It changes the elements of a draw in place.
type mistake struct {
	name  string
	apply func(v []float64, t target)
}

// mistakes are those of a kernel: a factor, an order, a part that was left out.
func mistakes() []mistake {
	each := func(f func(v float64) float64) func([]float64, target) {
		return func(values []float64, _ target) {
			for i, v := range values {
				values[i] = f(v)
			}
		}
	}
	return []mistake{
		{"a factor", func(v []float64, t target) {
			// Of bfloat16 a per cent is little more than a spacing, and less than what MLX is off in some cases.
			factor := 1.01
			if t.dtype == mlxc.BFloat16 {
				factor = 1.03
			}
			for i := range v {
				v[i] *= factor
			}
		}},
		{"times -1", each(func(v float64) float64 { return -v })},
		{"zeros", each(func(float64) float64 { return 0 })},
		{"one NaN", func(v []float64, _ target) { v[len(v)/2] = math.NaN() }},
		{"one infinity", func(v []float64, _ target) { v[len(v)/2] = math.Inf(1) }},
		{"last axes exchanged", func(v []float64, t target) {
			if n := len(t.shape); n >= 2 {
				transposed(v, t.shape[n-2], t.shape[n-1])
			}
		}},
		{"backwards", func(v []float64, _ target) { slices.Reverse(v) }},
		{"a row of zeros", func(v []float64, t target) {
			width := t.width()
			from := len(v) / width / 2 * width
			clear(v[from : from+width])
		}},
		{"a row that is the next", func(v []float64, t target) {
			if width := t.width(); len(v) >= 2*width {
				copy(v[:width], v[width:2*width])
			}
		}},
		{"no last column", func(v []float64, t target) {
			width := t.width()
			for i := width - 1; i < len(v); i += width {
				v[i] = 0
			}
		}},
		{"no last row", func(v []float64, t target) { clear(v[len(v)-t.width():]) }},
		{"half of the sum", each(func(v float64) float64 { return v / 2 })},
		{"the mean too much", func(values []float64, _ target) {
			mean := 0.0
			for _, v := range values {
				mean += math.Abs(v) / float64(len(values))
			}
			for i := range values {
				values[i] += mean / 20
			}
		}},
	}
}

// width is the length of a row.
func (t target) width() int {
	if len(t.shape) == 0 {
		return 1
	}
	return t.shape[len(t.shape)-1]
}

// transposed writes each matrix down by columns.
func transposed(v []float64, rows, columns int) {
	for from := 0; from < len(v); from += rows * columns {
		matrix := slices.Clone(v[from : from+rows*columns])
		for i := range rows {
			for j := range columns {
				v[from+j*rows+i] = matrix[i*columns+j]
			}
		}
	}
}

// A wrong result fails, of every operation, output and dtype: not in each case, since some hide some mistakes
// (a last key that few queries see has next to no gradient), but in many. A full run tries all cases. A sample
// has, of each operation, those with a new output in every dtype, and one in 16 of the others in one dtype.
func TestMistakesAreFound(t *testing.T) {
	type kind struct{ op, dtype, output, mistake string }
	tried, found, examples := map[kind]int{}, map[kind]int{}, map[kind]string{}
	for _, op := range Ops() {
		outputs := map[string]bool{}
		for n, c := range op.Cases {
			isNew := hasNewTarget(c, outputs)
			if large(c) || c.empty() || !long.Full() && n%16 != 0 && !isNew {
				continue
			}
			for _, target := range c.targets(mlxc.Float32) {
				outputs[target.name] = true
			}
			for d, dtype := range DTypes() {
				if !long.Full() && !isNew && d != (n/16+1)%len(DTypes()) {
					continue
				}
				mlxc.WithScope(func() {
					eachMistake(t, op.Name, c, dtype, func(output, mistake string, row report.Case) {
						k := kind{op.Name, dtype.String(), output, mistake}
						tried[k]++
						if row.Pass {
							examples[k] = c.Name
						} else {
							found[k]++
						}
					})
				})
			}
		}
	}
	require.NotEmpty(t, tried)
	for k, n := range tried {
		if 3*found[k] < n {
			t.Errorf("%s %s %s: %q is found in %d of %d cases only, and not in %s", k.op, k.dtype, k.output, k.mistake, found[k], n, examples[k])
		}
	}
}

func hasNewTarget(c Case, seen map[string]bool) bool {
	return slices.ContainsFunc(c.targets(mlxc.Float32), func(t target) bool { return !seen[t.name] })
}

// eachMistake judges what our gradient of a case would be with each mistake that changes it.
func eachMistake(t *testing.T, op string, c Case, dtype mlxc.DType, do func(output, mistake string, row report.Case)) {
	t.Helper()
	draws, err := drawsFor(op, c, dtype)
	require.NoError(t, err)
	truth, err := c.truth(draws)
	require.NoError(t, err)
	ours, err := gradients(c.Ours, c, draws, dtype)
	require.NoError(t, err)
	peers := peersOf(c, draws, dtype, truth)
	for i, target := range c.targets(dtype) {
		size := oracle.Size(target.shape)
		for _, m := range mistakes() {
			wrong := slices.Clone(ours[i])
			for from := 0; from < len(wrong); from += size {
				m.apply(wrong[from:from+size], target)
			}
			wrong, err := toFloat64(toArray(wrong, target.dtype, []int{len(wrong)}))
			require.NoError(t, err)
			if accuracy.Measure(wrong, ours[i]).Max == 0 {
				continue
			}
			row := report.Case{Draws: len(draws)}
			judge(&row, target, c.spacing(target.dtype), wrong, truth[i], peers[i])
			do(target.name, m.name, row)
		}
	}
}

// misreading is an operation that takes something of a case for another.
type misreading struct {
	name string
	op   string
	c    Case // With Ours as it is misread.
	// untouched are the outputs that do not depend on what is misread.
	untouched []string
}

func misreadings() []misreading {
	var out []misreading
	attend := func(name string, c attentionCase, change func(in []*mlxc.Array, cfg *ops.AttentionConfig)) {
		right := c.build()
		c = c.withDefaults()
		right.Ours = func(in []*mlxc.Array) []*mlxc.Array {
			in = slices.Clone(in)
			cfg := c.config(in)
			change(in, &cfg)
			if c.lse {
				o, lse := ops.AttentionLogSumExp(in[0], in[1], in[2], cfg)
				return []*mlxc.Array{o, lse}
			}
			return []*mlxc.Array{ops.Attention(in[0], in[1], in[2], cfg)}
		}
		out = append(out, misreading{name: name, op: "attention", c: right})
	}
	usual := attentionCase{batch: 2, heads: 4, kvHeads: 2, queries: 33, keys: 40, dim: 16}
	with := func(change func(*attentionCase)) attentionCase {
		c := usual
		change(&c)
		return c
	}
	causal := with(func(c *attentionCase) { c.causal = true })
	attend("not causal", causal, func(_ []*mlxc.Array, cfg *ops.AttentionConfig) { cfg.Causal = false })
	attend("causal one key too far", causal, func(_ []*mlxc.Array, cfg *ops.AttentionConfig) {
		cfg.Causal, cfg.Window = false, &ops.Window{Left: ops.Unbounded, Right: 1}
	})
	window := with(func(c *attentionCase) { c.window = &ops.Window{Left: 5, Right: 2} })
	attend("no window", window, func(_ []*mlxc.Array, cfg *ops.AttentionConfig) { cfg.Window = nil })
	attend("one more to the left", window, func(_ []*mlxc.Array, cfg *ops.AttentionConfig) { cfg.Window = &ops.Window{Left: 6, Right: 2} })
	attend("one less to the right", window, func(_ []*mlxc.Array, cfg *ops.AttentionConfig) { cfg.Window = &ops.Window{Left: 5, Right: 1} })
	for _, kind := range []maskKind{booleans, added} {
		mask := with(func(c *attentionCase) { c.mask, c.maskAxes = kind, "ij" })
		attend(fmt.Sprint("no mask ", kind), mask, func(_ []*mlxc.Array, cfg *ops.AttentionConfig) { cfg.Mask = nil })
		attend(fmt.Sprint("the mask backwards ", kind), mask, func(_ []*mlxc.Array, cfg *ops.AttentionConfig) { cfg.Mask = cfg.Mask.Flip(-1) })
	}
	sinks := with(func(c *attentionCase) { c.sinks = true })
	attend("no sinks", sinks, func(_ []*mlxc.Array, cfg *ops.AttentionConfig) { cfg.Sinks = nil })
	attend("another head's sink", sinks, func(_ []*mlxc.Array, cfg *ops.AttentionConfig) { cfg.Sinks = cfg.Sinks.Roll(1) })
	capped := with(func(c *attentionCase) { c.softCap = true })
	attend("no soft-cap", capped, func(_ []*mlxc.Array, cfg *ops.AttentionConfig) { cfg.SoftCap = 0 })
	attend("scale off by 1 %", usual, func(_ []*mlxc.Array, cfg *ops.AttentionConfig) { cfg.Scale *= 1.01 })
	attend("key heads exchanged", usual, func(in []*mlxc.Array, _ *ops.AttentionConfig) { in[1] = in[1].Flip(1) })
	attend("value heads exchanged", usual, func(in []*mlxc.Array, _ *ops.AttentionConfig) { in[2] = in[2].Flip(1) })
	packed := attentionCase{batch: 1, heads: 4, kvHeads: 2, dim: 16, queryStarts: []int{0, 3, 20, 40}}
	attend("one sequence", packed, func(_ []*mlxc.Array, cfg *ops.AttentionConfig) { cfg.QueryStarts, cfg.KeyStarts = nil, nil })
	attend("sequences begin one later", packed, func(_ []*mlxc.Array, cfg *ops.AttentionConfig) {
		cfg.QueryStarts = mlxc.FromSlice([]int32{0, 4, 21, 40})
		cfg.KeyStarts = cfg.QueryStarts
	})
	lse := with(func(c *attentionCase) { c.lse = true })
	right := lse.build()
	ours := right.Ours
	right.Ours = func(in []*mlxc.Array) []*mlxc.Array {
		o := ours(in)
		return []*mlxc.Array{o[0], o[1].StopGradient()}
	}
	out = append(out, misreading{"no gradient of lse", "attention", right, []string{"out", "lse", "dv"}})

	lose := func(name string, c lossCase, change func(in []*mlxc.Array, cfg *ops.CrossEntropyConfig)) {
		right := c.ofLogits()
		right.Ours = func(in []*mlxc.Array) []*mlxc.Array {
			in, cfg := slices.Clone(in), c.config()
			change(in, &cfg)
			return []*mlxc.Array{ops.CrossEntropy(in[0], in[1], cfg)}
		}
		out = append(out, misreading{name: name, op: "cross-entropy", c: right})
		linear := linearLossCase{c, 16}.ofHidden()
		linear.Ours = func(in []*mlxc.Array) []*mlxc.Array {
			in, cfg := slices.Clone(in), c.config()
			in[1], in[2] = in[2], in[1]
			change(in, &cfg)
			return []*mlxc.Array{ops.LinearCrossEntropy(in[0], in[2], in[1], cfg)}
		}
		out = append(out, misreading{name: name, op: "linear-cross-entropy", c: linear})
	}
	loss := lossCase{targets: []int{37}, v: 33}
	change := func(f func(*lossCase)) lossCase {
		c := loss
		f(&c)
		return c
	}
	lose("sum for mean", loss, func(_ []*mlxc.Array, cfg *ops.CrossEntropyConfig) { cfg.Reduction = ops.Sum })
	lose("the next target", loss, func(in []*mlxc.Array, _ *ops.CrossEntropyConfig) { in[1] = in[1].Roll(1) })
	for _, reduction := range reductions() {
		lose(fmt.Sprint("ignored counts ", reduction), change(func(c *lossCase) { c.ignore, c.reduction = true, reduction }),
			func(_ []*mlxc.Array, cfg *ops.CrossEntropyConfig) { cfg.IgnoreIndex = nil })
		lose(fmt.Sprint("no smoothing ", reduction), change(func(c *lossCase) { c.smooth, c.reduction = true, reduction }),
			func(_ []*mlxc.Array, cfg *ops.CrossEntropyConfig) { cfg.LabelSmoothing = 0 })
		lose(fmt.Sprint("no z-loss ", reduction), change(func(c *lossCase) { c.zLoss, c.reduction = true, reduction }),
			func(_ []*mlxc.Array, cfg *ops.CrossEntropyConfig) { cfg.ZLoss = 0 })
		lose(fmt.Sprint("no soft-cap ", reduction), change(func(c *lossCase) { c.softCap, c.reduction = true, reduction }),
			func(_ []*mlxc.Array, cfg *ops.CrossEntropyConfig) { cfg.SoftCap = 0 })
	}

	normalise := func(name, op string, n norm, c normCase, change func(in []*mlxc.Array, eps float32) ([]*mlxc.Array, float32)) {
		right := n.build(c)
		params := slices.Concat(n.params, n.vectors)
		right.Ours = func(in []*mlxc.Array) []*mlxc.Array {
			in, eps := change(slices.Clone(in), c.eps)
			return n.ours(spread(c, params, in), eps)
		}
		untouched := []string{"h", "db"}
		if op == "rmsnorm-residual" {
			untouched = append(untouched, "dr")
		}
		out = append(out, misreading{name, op, right, untouched})
	}
	for _, n := range []struct {
		op string
		norm
	}{
		{"rmsnorm", rmsNormOf(ops.RMSNorm)},
		{"rmsnorm-separate", rmsNormOf(ops.RMSNormSeparate)},
		{"layernorm", layerNormOf(ops.LayerNorm)},
		{"layernorm-separate", layerNormOf(ops.LayerNormSeparate)},
		{"rmsnorm-residual", rmsNormResidualNorm()},
		{"add-rmsnorm", addRMSNormNorm()},
	} {
		w := len(n.params)
		row := normCase{rowCase: rowCase{shape: []int{37, 129}}, eps: usualEps}
		normalise("no w", n.op, n.norm, row, func(in []*mlxc.Array, eps float32) ([]*mlxc.Array, float32) {
			in[w] = mlxc.OnesLike(in[w])
			return in, eps
		})
		normalise("w backwards", n.op, n.norm, row, func(in []*mlxc.Array, eps float32) ([]*mlxc.Array, float32) {
			in[w] = in[w].Flip(0)
			return in, eps
		})
		row.values, row.label = Normal(1e-4), "tiny"
		normalise("no eps", n.op, n.norm, row, func(in []*mlxc.Array, _ float32) ([]*mlxc.Array, float32) { return in, 0 })
		normalise("half of eps", n.op, n.norm, row, func(in []*mlxc.Array, eps float32) ([]*mlxc.Array, float32) { return in, eps / 2 })
	}
	table := embeddingCase{ids: []int{199}, v: 33, d: 31}
	c := table.lookup()
	c.Ours = func(in []*mlxc.Array) []*mlxc.Array { return []*mlxc.Array{ops.Embedding(in[0], in[1].Roll(1))} }
	out = append(out, misreading{name: "the next id", op: "embedding", c: c})
	return out
}

// An operation that takes something of a case for another fails, in every dtype, in all that depends on it. In a sample,
// dtypes take turns.
func TestMisreadingsAreFound(t *testing.T) {
	for i, m := range misreadings() {
		dtypes := DTypes()
		if !long.Full() {
			dtypes = dtypes[i%len(dtypes):][:1]
		}
		t.Run(m.op+" "+m.name, func(t *testing.T) {
			r := Run(context.Background(), []Op{{Name: m.op, Cases: []Case{m.c}}}, Options{DTypes: dtypes})
			require.NotEmpty(t, r.Cases)
			for _, c := range r.Cases {
				require.Equal(t, slices.Contains(m.untouched, c.Output), c.Pass, "%s %s: %s", c.Output, c.DType, c.Message)
				require.NotContains(t, c.Message, "failed:")
				require.Positive(t, c.Launches)
			}
		})
	}
}
