package suite

import (
	"math"
	"slices"
	"strings"

	"github.com/mlxgrad/mlxgrad/compare"
	"github.com/mlxgrad/mlxgrad/compare/bench"
	"github.com/mlxgrad/mlxgrad/compare/oracle"
	"github.com/mlxgrad/mlxgrad/compare/report"
	"github.com/mlxgrad/mlxgrad/mlxc"
	"github.com/mlxgrad/mlxgrad/ops"
	"github.com/mlxgrad/mlxgrad/ops/separate"
)

// BenchOps returns the operations with their cases for device d: the sizes of models for a GPU, and smaller sizes for a
// CPU, which takes minutes for the sizes of models.
func BenchOps(d mlxc.Device) []bench.Op {
	s := benchSizesOf(d)
	rows := func(build func(rowCase) compare.Case, backward, step string, shapes [][]int) []bench.Case {
		var cases []bench.Case
		for _, shape := range shapes {
			cases = append(cases, bench.Case{Case: build(rowCase{shape: shape}), Moved: moved(backward, step)})
		}
		return cases
	}
	ofNorm := func(n norm) func(rowCase) compare.Case {
		return func(c rowCase) compare.Case { return n.build(normCase{rowCase: c, eps: usualEps}) }
	}
	rms, rmsSeparate := ofNorm(rmsNormOf(ops.RMSNorm)), ofNorm(rmsNormOf(separate.RMSNorm))
	layer, layerSeparate := ofNorm(layerNormOf(ops.LayerNorm)), ofNorm(layerNormOf(separate.LayerNorm))
	const (
		rmsBackward, rmsStep     = "x w dy dx dw", "x w dy y dx dw"
		layerBackward, layerStep = "x w dy dx dw db", "x w b dy y dx dw db"
	)
	precise := func(c rowCase) compare.Case { return softmaxCase(c, (*mlxc.Array).SoftmaxPrecise) }
	return []bench.Op{
		{Name: "rmsnorm", Pass: report.Backward, Cases: rows(rms, rmsBackward, rmsStep, s.norms)},
		{Name: "rmsnorm-separate", Pass: report.Backward, Cases: rows(rmsSeparate, rmsBackward, rmsStep, s.norms)},
		{Name: "layernorm", Pass: report.Backward, Cases: rows(layer, layerBackward, layerStep, s.norms)},
		{Name: "layernorm-separate", Pass: report.Backward, Cases: rows(layerSeparate, layerBackward, layerStep, s.norms)},
		// dr is dy (rmsnorm-residual) or dx (add-rmsnorm) itself, so it is not moved.
		{
			Name:  "rmsnorm-residual",
			Pass:  report.Backward,
			Cases: rows(ofNorm(rmsNormResidualNorm()), "x w dy dx dw", "x r w dy y dx dw", s.norms),
		},
		{
			Name:  "add-rmsnorm",
			Pass:  report.Backward,
			Cases: rows(ofNorm(addRMSNormNorm()), "h w dh dy dx dw", "x r w dh dy h y dx dw", s.norms),
		},
		{Name: "softmax", Pass: report.Backward, Cases: rows(precise, "y dy dx", "x dy y dx", s.softmaxes)},
		{Name: "transpose2d", Pass: report.Backward, Cases: dense(rows(transposeCase, "dy dx", "x dy y dx", s.transposes))},
		{Name: "embedding", Pass: report.Backward, Cases: embeddingBenches(s.tables)},
		{Name: "cross-entropy", Pass: report.Step, Cases: lossBenches(s.losses)},
		{Name: "linear-cross-entropy", Pass: report.Step, Cases: linearLossBenches(s.linearLosses)},
		{Name: "matmul", Pass: report.Step, Cases: matMulBenches(s.products)},
		{Name: "attention", Pass: report.Step, Cases: attentionBenches(s.attentions)},
		{Name: "gated-delta-rule", Pass: report.Step, Cases: gatedDeltaBenches(s.gatedDeltas)},
		{Name: "ssm-scan", Pass: report.Step, Cases: ssmBenches(s.scans)},
	}
}

func dense(cases []bench.Case) []bench.Case {
	for i := range cases {
		cases[i].Dense = true
	}
	return cases
}

// moved returns the names for both passes.
func moved(backward, step string) map[report.Pass][]string {
	return map[report.Pass][]string{report.Backward: strings.Fields(backward), report.Step: strings.Fields(step)}
}

// benchSizes are the sizes of the cases for a device.
type benchSizes struct {
	norms, softmaxes, transposes [][]int
	tables                       []embeddingCase
	losses                       []lossCase
	linearLosses                 []linearLossCase
	products                     [][3]int // rows, terms, columns
	attentions                   []attentionCase
	gatedDeltas                  []gatedDeltaCase
	scans                        []ssmCase
}

func benchSizesOf(d mlxc.Device) benchSizes {
	loss := func(rows, classes int, reduction ops.Reduction) lossCase {
		return lossCase{targets: []int{rows}, v: classes, lossOptions: lossOptions{reduction: reduction}}
	}
	bothLosses := func(rows, classes int) []lossCase {
		return []lossCase{loss(rows, classes, ops.ReductionMean), loss(rows, classes, ops.ReductionNone)}
	}
	if d == mlxc.CPU {
		return benchSizes{
			norms:        [][]int{{256, 1024}, {1024, 4096}},
			softmaxes:    [][]int{{256, 1024}, {256, 32768}},
			transposes:   [][]int{{256, 1024}, {1024, 4096}},
			tables:       []embeddingCase{{ids: []int{2048}, v: 8192, d: 128}},
			losses:       slices.Concat(bothLosses(256, 1024), bothLosses(256, 32768)),
			linearLosses: []linearLossCase{{loss(256, 8192, ops.ReductionMean), 256}, {loss(256, 8192, ops.ReductionNone), 256}},
			products:     [][3]int{{512, 64, 192}, {512, 512, 512}, {256, 1024, 4096}},
			attentions: []attentionCase{
				{batch: 1, heads: 2, queries: 512, dim: 64, causal: true},
				{batch: 1, heads: 1, queries: 512, dim: 64, causal: true},
				{batch: 1, heads: 1, queries: 1024, dim: 64, causal: true},
				{batch: 1, heads: 1, queries: 2048, dim: 64, causal: true},
				{batch: 1, heads: 1, queries: 4096, dim: 64, causal: true},
			},
			gatedDeltas: []gatedDeltaCase{
				{batch: 1, heads: 2, length: 256, dim: 64},
				{batch: 1, heads: 4, keyHeads: 2, length: 512, dim: 128},
			},
			scans: []ssmCase{
				{batch: 1, length: 256, heads: 4, p: 64, n: 64, d: true},
				{batch: 1, length: 512, heads: 4, p: 64, n: 128, d: true},
			},
		}
	}
	return benchSizes{
		norms:      [][]int{{8192, 1024}, {8192, 4096}, {8192, 8192}, {256, 1024}},
		softmaxes:  [][]int{{8192, 1024}, {8192, 4096}, {8192, 8192}, {8192, 32768}, {8192, 128256}, {256, 1024}},
		transposes: [][]int{{8192, 1024}, {8192, 4096}, {8192, 8192}, {16, 4096, 4096}},
		tables: []embeddingCase{
			{ids: []int{8192}, v: 32768, d: 1024},
			{ids: []int{8192}, v: 32768, d: 4096},
			{ids: []int{8192}, v: 128256, d: 4096},
		},
		losses: slices.Concat(bothLosses(8192, 32768), bothLosses(8192, 128256), bothLosses(256, 1024)),
		linearLosses: []linearLossCase{
			{loss(4096, 32768, ops.ReductionMean), 2048},
			{loss(4096, 32768, ops.ReductionNone), 2048},
			{loss(4096, 128256, ops.ReductionMean), 4096},
			{loss(16384, 128256, ops.ReductionMean), 2048},
		},
		products: [][3]int{{4096, 4096, 4096}},
		attentions: []attentionCase{
			{batch: 4, heads: 32, queries: 2048, dim: 128, causal: true},
			{batch: 4, heads: 32, kvHeads: 8, queries: 4096, dim: 128, causal: true},
			{batch: 4, heads: 32, queries: 2048, dim: 64},
			{batch: 4, heads: 32, queries: 2048, dim: 64, causal: true},
			{batch: 4, heads: 32, queries: 2048, dim: 72, causal: true},
			{batch: 4, heads: 32, queries: 2048, dim: 80, causal: true},
			{batch: 4, heads: 32, queries: 2048, dim: 96, causal: true},
			{batch: 2, heads: 16, queries: 4096, dim: 192, causal: true},
			{batch: 2, heads: 16, queries: 4096, dim: 192, valueDim: 128, causal: true},
			{batch: 1, heads: 16, queries: 4096, dim: 256, causal: true},
			{batch: 1, heads: 32, kvHeads: 8, queries: 16384, dim: 128, causal: true},
			// cuDNN's kernels lack these, so MLX stores all scores.
			{batch: 4, heads: 32, queries: 2000, dim: 128, causal: true},
			{batch: 4, heads: 32, queries: 2048, dim: 128, mask: booleans, maskAxes: "ij"},
			{batch: 4, heads: 32, kvHeads: 8, queries: 2048, dim: 64, causal: true, sinks: true},
		},
		gatedDeltas: []gatedDeltaCase{
			{batch: 1, heads: 4, length: 4096, dim: 128},
			{batch: 1, heads: 32, keyHeads: 16, length: 2048, dim: 128},
			{batch: 8, heads: 16, length: 512, dim: 64},
		},
		scans: []ssmCase{
			{batch: 4, length: 1024, heads: 64, p: 64, n: 128, d: true},
			{batch: 1, length: 4096, heads: 16, p: 64, n: 128, d: true},
		},
	}
}

// matMulBenches times MLX's products on both sides on a GPU and on macOS.
func matMulBenches(products [][3]int) []bench.Case {
	var cases []bench.Case
	for _, s := range products {
		product := 2 * float64(s[0]) * float64(s[1]) * float64(s[2])
		cases = append(cases, bench.Case{
			Case:  matMulCase{rowCase{shape: []int{s[0], s[1]}}, s[2]}.build(),
			FLOPs: map[report.Pass]float64{report.Backward: 2 * product, report.Step: 3 * product},
		})
	}
	return cases
}

func embeddingBenches(tables []embeddingCase) []bench.Case {
	var cases []bench.Case
	for _, c := range tables {
		// A step also reads one row of w for each distinct id, which is not counted.
		cases = append(cases, bench.Case{Case: c.lookup(), Moved: moved("ids dy dw", "ids dy y dw")})
	}
	return cases
}

// lossBenches times MLX's cross-entropy without the operations for ignored targets that the comparison adds to it.
func lossBenches(losses []lossCase) []bench.Case {
	var cases []bench.Case
	for _, c := range losses {
		built := c.ofLogits()
		built.MLX = func(in []*mlxc.Array) []*mlxc.Array {
			return []*mlxc.Array{c.reduced(mlxc.CrossEntropy(in[0], in[1]))}
		}
		cases = append(cases, bench.Case{Case: built, Moved: moved("x t dloss dx", "x t dloss loss dx")})
	}
	return cases
}

// reduced returns the mean of the losses if the case has a mean, else the losses. No target is ignored.
func (c lossCase) reduced(losses *mlxc.Array) *mlxc.Array {
	if c.reduction == ops.ReductionMean {
		return losses.Mean()
	}
	return losses
}

func linearLossBenches(losses []linearLossCase) []bench.Case {
	var cases []bench.Case
	for _, c := range losses {
		built := c.ofHidden()
		built.MLX = func(in []*mlxc.Array) []*mlxc.Array {
			return []*mlxc.Array{c.reduced(mlxc.CrossEntropy(in[0].MatMul(in[1].Transpose()), in[2]))}
		}
		product := 2 * float64(oracle.Size(c.targets)) * float64(c.v) * float64(c.width)
		cases = append(cases, bench.Case{
			Case: built,
			// the products for the logits (in a step only), dh and dw
			FLOPs:      map[report.Pass]float64{report.Backward: 2 * product, report.Step: 3 * product},
			Deviations: map[string]float64{"w": 1 / math.Sqrt(float64(c.width))},
			// For a cotangent of 1, most elements of MLX's gradient of the logits are 0 in float16. A GPU multiplies
			// zeros faster, because they take less power.
			LossScale: 1 << 15,
		})
	}
	return cases
}

func attentionBenches(attentions []attentionCase) []bench.Case {
	var cases []bench.Case
	for _, c := range attentions {
		forward, backward := c.flops()
		b := bench.Case{
			Case:  c.build(),
			FLOPs: map[report.Pass]float64{report.Backward: backward, report.Step: forward + backward},
		}
		switch {
		case c.queries > 8192:
			// In float32 MLX stores all scores several times, which exceeds the memory of a GPU.
			b.DTypes = []mlxc.DType{mlxc.Float16, mlxc.BFloat16}
		case c.queries == 4096 && c.batch*c.heads == 1:
			// On a CPU this case shows the memory. MLX takes minutes for it in half precision.
			b.DTypes = []mlxc.DType{mlxc.Float32}
		}
		cases = append(cases, b)
	}
	return cases
}

// gatedDeltaBenches counts the products of a state with a vector and of two vectors, step by step: three forward, and
// seven backward without those that compute the states again. The decays are close to 1, because the values of a
// benchmark have both signs.
func gatedDeltaBenches(cases []gatedDeltaCase) []bench.Case {
	var benches []bench.Case
	for _, c := range cases {
		d := c.withDefaults()
		product := 2 * float64(d.batch) * float64(d.heads) * float64(d.length) * float64(d.dim) * float64(d.valueDim)
		benches = append(benches, bench.Case{
			Case:       c.build(),
			FLOPs:      map[report.Pass]float64{report.Backward: 7 * product, report.Step: 10 * product},
			Deviations: map[string]float64{"k": 1 / math.Sqrt(float64(d.dim)), "decay": 0.001, "beta": 0.3},
		})
	}
	return benches
}

// ssmBenches have decays close to 1, as the products of small dt and A of either sign. x is small, because the gradient
// of A would exceed float16 otherwise.
func ssmBenches(scans []ssmCase) []bench.Case {
	var cases []bench.Case
	for _, c := range scans {
		cases = append(cases, bench.Case{
			Case:       c.build(),
			Moved:      moved("x dt B C dy dx ddt dB dC", "x dt B C y dy dx ddt dB dC"),
			Deviations: map[string]float64{"x": 0.1, "dt": 0.1, "A": 0.1},
		})
	}
	return cases
}

// flops counts the products of a fused attention: two forward, and five backward (the scores again, dout·vᵀ, dq, dk and
// dv). Pairs hidden by causality do not count. Pairs hidden by a mask count.
func (c attentionCase) flops() (forward, backward float64) {
	c = c.withDefaults()
	pairs := 0
	for i := range c.queries {
		seen := c.keys
		if c.causal {
			seen = min(seen, max(0, c.keys-c.queries+i+1))
		}
		pairs += seen
	}
	ofWidth := func(width int) float64 {
		return 2 * float64(c.batch) * float64(c.heads) * float64(pairs) * float64(width)
	}
	return ofWidth(c.dim) + ofWidth(c.valueDim), 3*ofWidth(c.dim) + 2*ofWidth(c.valueDim)
}
