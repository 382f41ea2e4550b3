package suite

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/compare"
	"github.com/mlxgrad/mlxgrad/internal/long"
	"github.com/mlxgrad/mlxgrad/mlxc"
	"github.com/mlxgrad/mlxgrad/ops"
	"github.com/mlxgrad/mlxgrad/ops/separate"
)

// misreading is an operation whose function misreads one of its arguments or options.
type misreading struct {
	name string
	op   string
	c    compare.Case // Ours misreads its arguments
	// untouched lists the outputs that do not depend on the misread argument.
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
	attend(
		"one more to the left",
		window,
		func(_ []*mlxc.Array, cfg *ops.AttentionConfig) { cfg.Window = &ops.Window{Left: 6, Right: 2} },
	)
	attend(
		"one less to the right",
		window,
		func(_ []*mlxc.Array, cfg *ops.AttentionConfig) { cfg.Window = &ops.Window{Left: 5, Right: 1} },
	)
	for _, kind := range []maskKind{booleans, added} {
		mask := with(func(c *attentionCase) { c.mask, c.maskAxes = kind, "ij" })
		attend(fmt.Sprint("no mask ", kind), mask, func(_ []*mlxc.Array, cfg *ops.AttentionConfig) { cfg.Mask = nil })
		attend(
			fmt.Sprint("the mask backwards ", kind),
			mask,
			func(_ []*mlxc.Array, cfg *ops.AttentionConfig) { cfg.Mask = cfg.Mask.Flip(-1) },
		)
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

	recur := func(
		name string, c gatedDeltaCase, change func(in []*mlxc.Array, cfg *ops.GatedDeltaRuleConfig), untouched ...string,
	) {
		right := c.build()
		c = c.withDefaults()
		right.Ours = func(in []*mlxc.Array) []*mlxc.Array {
			in = slices.Clone(in)
			cfg := c.config(in)
			change(in, &cfg)
			o, state := ops.GatedDeltaRule(in[0], in[1], in[2], in[3], in[4], cfg)
			return []*mlxc.Array{o, state}
		}
		out = append(out, misreading{name, "gated-delta-rule", right, untouched})
	}
	steps := gatedDeltaCase{batch: 1, heads: 4, keyHeads: 2, length: 40, dim: 16, initial: true}
	recur("no initial state", steps,
		func(_ []*mlxc.Array, cfg *ops.GatedDeltaRuleConfig) { cfg.InitialState = nil }, "dv")
	recur("another head's decays", steps,
		func(in []*mlxc.Array, _ *ops.GatedDeltaRuleConfig) { in[3] = in[3].Flip(1) })
	recur("key heads exchanged", steps, func(in []*mlxc.Array, _ *ops.GatedDeltaRuleConfig) { in[1] = in[1].Flip(1) })
	recur("twice the scale", steps, func(_ []*mlxc.Array, cfg *ops.GatedDeltaRuleConfig) { cfg.Scale = 0.5 }, "state")
	sequences := gatedDeltaCase{batch: 1, heads: 2, dim: 16, starts: []int{0, 3, 20, 40}, initial: true}
	recur("sequences begin one later", sequences, func(_ []*mlxc.Array, cfg *ops.GatedDeltaRuleConfig) {
		cfg.Starts = mlxc.FromSlice([]int32{0, 4, 21, 40})
	})

	scan := func(name string, c ssmCase, change func(in []*mlxc.Array, cfg *ops.SSMScanConfig), untouched ...string) {
		right := c.build()
		c = c.withDefaults()
		right.Ours = func(in []*mlxc.Array) []*mlxc.Array {
			in = slices.Clone(in)
			cfg := c.config(in)
			change(in, &cfg)
			y, state := ops.SSMScan(in[0], in[1], in[2], in[3], in[4], cfg)
			return []*mlxc.Array{y, state}
		}
		out = append(out, misreading{name, "ssm-scan", right, untouched})
	}
	model := ssmCase{batch: 1, length: 40, heads: 4, groups: 2, p: 8, n: 16, d: true, state: true}
	scan("no initial state", model, func(_ []*mlxc.Array, cfg *ops.SSMScanConfig) { cfg.InitialState = nil }, "dx", "dB", "dD")
	scan("no D", model, func(_ []*mlxc.Array, cfg *ops.SSMScanConfig) { cfg.D = nil }, "h", "ddt", "dA", "dB", "dC", "dh0")
	scan("another head's decay", model, func(in []*mlxc.Array, _ *ops.SSMScanConfig) { in[2] = in[2].Flip(0) }, "dD")
	scan("groups exchanged", model, func(in []*mlxc.Array, _ *ops.SSMScanConfig) { in[3] = in[3].Flip(2) }, "dD", "dh0")
	packedModel := ssmCase{batch: 1, heads: 4, groups: 2, p: 8, n: 16, starts: []int{0, 3, 20, 40}, state: true}
	scan("sequences begin one later", packedModel, func(_ []*mlxc.Array, cfg *ops.SSMScanConfig) {
		cfg.Starts = mlxc.FromSlice([]int32{0, 4, 21, 40})
	})

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
	lose("sum for mean", loss, func(_ []*mlxc.Array, cfg *ops.CrossEntropyConfig) { cfg.Reduction = ops.ReductionSum })
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

	normalize := func(name, op string, n norm, c normCase, change func(in []*mlxc.Array, eps float32) ([]*mlxc.Array, float32)) {
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
		{"rmsnorm-separate", rmsNormOf(separate.RMSNorm)},
		{"layernorm", layerNormOf(ops.LayerNorm)},
		{"layernorm-separate", layerNormOf(separate.LayerNorm)},
		{"rmsnorm-residual", rmsNormResidualNorm()},
		{"add-rmsnorm", addRMSNormNorm()},
	} {
		w := len(n.params)
		row := normCase{rowCase: rowCase{shape: []int{37, 129}}, eps: usualEps}
		normalize("no w", n.op, n.norm, row, func(in []*mlxc.Array, eps float32) ([]*mlxc.Array, float32) {
			in[w] = mlxc.OnesLike(in[w])
			return in, eps
		})
		normalize("w backwards", n.op, n.norm, row, func(in []*mlxc.Array, eps float32) ([]*mlxc.Array, float32) {
			in[w] = in[w].Flip(0)
			return in, eps
		})
		row.values, row.label = compare.Normal(1e-4), "tiny"
		normalize("no eps", n.op, n.norm, row, func(in []*mlxc.Array, _ float32) ([]*mlxc.Array, float32) { return in, 0 })
		normalize("half of eps", n.op, n.norm, row, func(in []*mlxc.Array, eps float32) ([]*mlxc.Array, float32) { return in, eps / 2 })
	}
	table := embeddingCase{ids: []int{199}, v: 33, d: 31}
	c := table.lookup()
	c.Ours = func(in []*mlxc.Array) []*mlxc.Array { return []*mlxc.Array{ops.Embedding(in[0], in[1].Roll(1))} }
	out = append(out, misreading{name: "the next id", op: "embedding", c: c})
	return out
}

// A misreading fails in every dtype, in every output that depends on it. A sample runs each in one dtype.
func TestMisreadingsAreFound(t *testing.T) {
	for i, m := range misreadings() {
		dtypes := compare.DTypes()
		if !long.Full() {
			dtypes = dtypes[i%len(dtypes):][:1]
		}
		t.Run(m.op+" "+m.name, func(t *testing.T) {
			r := compare.Run(context.Background(), []compare.Op{{Name: m.op, Cases: []compare.Case{m.c}}}, compare.Options{DTypes: dtypes})
			require.NotEmpty(t, r.Rows)
			for _, c := range r.Rows {
				require.Equal(t, slices.Contains(m.untouched, c.Output), c.Pass, "%s %s: %s", c.Output, c.DType, c.Message)
				require.NotContains(t, c.Message, "failed:")
				require.Positive(t, c.Launches)
			}
		})
	}
}
