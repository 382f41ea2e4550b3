package compare

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/mlxgrad/mlxgrad/compare/oracle"
	"github.com/mlxgrad/mlxgrad/compare/report"
	"github.com/mlxgrad/mlxgrad/mlxc"
	"github.com/mlxgrad/mlxgrad/ops"
)

// BenchOp is an operation with the cases that it is timed in.
type BenchOp struct {
	Name string
	// Pass is what is timed if nothing else was asked for: the gradients alone where a library's backward
	// kernels are compared by themselves, the whole step where the forward pass works for the gradient.
	Pass  report.Pass
	Cases []BenchCase
}

// BenchCase is a case that is timed, and the least work that it takes.
type BenchCase struct {
	Case
	// Moved names the arrays that a pass must read or write: inputs, outputs, and "d" and the name for
	// cotangents and gradients. Nil where FLOPs is what takes time.
	Moved map[report.Pass][]string
	// FLOPs is the arithmetic of matrix products, 2 for a multiplication and an addition.
	FLOPs map[report.Pass]float64
	// Deviations are those of inputs that are not 1.
	Deviations map[string]float64
	// Dense is set where MLX's gradient is a view, which costs nothing before somebody reads it; its copy
	// is timed then.
	Dense  bool
	DTypes []mlxc.DType // All of [DTypes] if nil.
}

// BenchOps returns the operations with the cases for a device: on a GPU of models' sizes, which a CPU
// would take minutes for.
func BenchOps(d mlxc.Device) []BenchOp {
	s := benchSizesOf(d)
	rows := func(build func(rowCase) Case, backward, step string, shapes [][]int) []BenchCase {
		var cases []BenchCase
		for _, shape := range shapes {
			cases = append(cases, BenchCase{Case: build(rowCase{shape: shape}), Moved: moved(backward, step)})
		}
		return cases
	}
	ofNorm := func(n norm) func(rowCase) Case {
		return func(c rowCase) Case { return n.build(normCase{rowCase: c, eps: usualEps}) }
	}
	rms, rmsSeparate := ofNorm(rmsNormOf(ops.RMSNorm)), ofNorm(rmsNormOf(ops.RMSNormSeparate))
	layer, layerSeparate := ofNorm(layerNormOf(ops.LayerNorm)), ofNorm(layerNormOf(ops.LayerNormSeparate))
	const (
		rmsBackward, rmsStep     = "x w dy dx dw", "x w dy y dx dw"
		layerBackward, layerStep = "x w dy dx dw db", "x w b dy y dx dw db"
	)
	precise := func(c rowCase) Case { return softmaxCase(c, (*mlxc.Array).SoftmaxPrecise) }
	return []BenchOp{
		{"rmsnorm", report.Backward, rows(rms, rmsBackward, rmsStep, s.norms)},
		{"rmsnorm-separate", report.Backward, rows(rmsSeparate, rmsBackward, rmsStep, s.norms)},
		{"layernorm", report.Backward, rows(layer, layerBackward, layerStep, s.norms)},
		{"layernorm-separate", report.Backward, rows(layerSeparate, layerBackward, layerStep, s.norms)},
		// The gradients of r and of a sum's other operand are arrays that are there already.
		{"rmsnorm-residual", report.Backward, rows(ofNorm(rmsNormResidualNorm()), "x w dy dx dw", "x r w dy y dx dw", s.norms)},
		{"add-rmsnorm", report.Backward, rows(ofNorm(addRMSNormNorm()), "h w dh dy dx dw", "x r w dh dy h y dx dw", s.norms)},
		{"softmax", report.Backward, rows(precise, "y dy dx", "x dy y dx", s.softmaxes)},
		{"transpose2d", report.Backward, dense(rows(transposeCase, "dy dx", "x dy y dx", s.transposes))},
		{"embedding", report.Backward, embeddingBenches(s.tables)},
		{"cross-entropy", report.Step, lossBenches(s.losses)},
		{"linear-cross-entropy", report.Step, linearLossBenches(s.linearLosses)},
		{"attention", report.Step, attentionBenches(s.attentions)},
	}
}

func dense(cases []BenchCase) []BenchCase {
	for i := range cases {
		cases[i].Dense = true
	}
	return cases
}

// moved lists the names of both passes.
func moved(backward, step string) map[report.Pass][]string {
	return map[report.Pass][]string{report.Backward: strings.Fields(backward), report.Step: strings.Fields(step)}
}

// benchSizes are the sizes of a device's cases.
type benchSizes struct {
	norms, softmaxes, transposes [][]int
	tables                       []embeddingCase
	losses                       []lossCase
	linearLosses                 []linearLossCase
	attentions                   []attentionCase
}

func benchSizesOf(d mlxc.Device) benchSizes {
	loss := func(rows, classes int, reduction ops.Reduction) lossCase {
		return lossCase{targets: []int{rows}, v: classes, lossOptions: lossOptions{reduction: reduction}}
	}
	bothLosses := func(rows, classes int) []lossCase {
		return []lossCase{loss(rows, classes, ops.Mean), loss(rows, classes, ops.None)}
	}
	if d == mlxc.CPU {
		return benchSizes{
			norms:        [][]int{{256, 1024}, {1024, 4096}},
			softmaxes:    [][]int{{256, 1024}, {256, 32768}},
			transposes:   [][]int{{256, 1024}, {1024, 4096}},
			tables:       []embeddingCase{{ids: []int{2048}, v: 8192, d: 128}},
			losses:       slices.Concat(bothLosses(256, 1024), bothLosses(256, 32768)),
			linearLosses: []linearLossCase{{loss(256, 8192, ops.Mean), 256}, {loss(256, 8192, ops.None), 256}},
			attentions: []attentionCase{
				{batch: 1, heads: 2, queries: 512, dim: 64, causal: true},
				{batch: 1, heads: 1, queries: 2048, dim: 64, causal: true},
			},
		}
	}
	return benchSizes{
		norms:      [][]int{{8192, 1024}, {8192, 4096}, {8192, 8192}},
		softmaxes:  [][]int{{8192, 1024}, {8192, 4096}, {8192, 8192}, {8192, 32768}, {8192, 128256}},
		transposes: [][]int{{8192, 1024}, {8192, 4096}, {8192, 8192}, {16, 4096, 4096}},
		tables: []embeddingCase{
			{ids: []int{8192}, v: 32768, d: 1024},
			{ids: []int{8192}, v: 32768, d: 4096},
			{ids: []int{8192}, v: 128256, d: 4096},
		},
		losses: slices.Concat(bothLosses(8192, 32768), bothLosses(8192, 128256)),
		linearLosses: []linearLossCase{
			{loss(4096, 32768, ops.Mean), 2048}, {loss(4096, 32768, ops.None), 2048}, {loss(4096, 128256, ops.Mean), 4096}, {loss(16384, 128256, ops.Mean), 2048},
		},
		attentions: []attentionCase{
			{batch: 4, heads: 32, queries: 2048, dim: 128, causal: true},
			{batch: 4, heads: 32, kvHeads: 8, queries: 4096, dim: 128, causal: true},
			{batch: 4, heads: 32, queries: 2048, dim: 64},
			{batch: 4, heads: 32, queries: 2048, dim: 64, causal: true},
			{batch: 1, heads: 16, queries: 4096, dim: 256, causal: true},
			{batch: 1, heads: 32, kvHeads: 8, queries: 16384, dim: 128, causal: true},
			// What cuDNN's kernels do not do, so that MLX holds all scores.
			{batch: 4, heads: 32, queries: 2000, dim: 128, causal: true},
			{batch: 4, heads: 32, queries: 2048, dim: 128, mask: booleans, maskAxes: "ij"},
			{batch: 4, heads: 32, kvHeads: 8, queries: 2048, dim: 64, causal: true, sinks: true},
		},
	}
}

func embeddingBenches(tables []embeddingCase) []BenchCase {
	var cases []BenchCase
	for _, c := range tables {
		// A step reads rows of w besides, as many as there are different ids.
		cases = append(cases, BenchCase{Case: c.lookup(), Moved: moved("ids dy dw", "ids dy y dw")})
	}
	return cases
}

// lossBenches have MLX's own function by itself: what cases of the comparison add to it, so that it
// ignores targets, would take time.
func lossBenches(losses []lossCase) []BenchCase {
	var cases []BenchCase
	for _, c := range losses {
		built := c.ofLogits()
		built.MLX = func(in []*mlxc.Array) []*mlxc.Array {
			return []*mlxc.Array{c.reduced(mlxc.CrossEntropy(in[0], in[1]))}
		}
		cases = append(cases, BenchCase{Case: built, Moved: moved("x t dloss dx", "x t dloss loss dx")})
	}
	return cases
}

// reduced is the loss of losses of which all count.
func (c lossCase) reduced(losses *mlxc.Array) *mlxc.Array {
	if c.reduction == ops.Mean {
		return losses.Mean()
	}
	return losses
}

func linearLossBenches(losses []linearLossCase) []BenchCase {
	var cases []BenchCase
	for _, c := range losses {
		built := c.ofHidden()
		built.MLX = func(in []*mlxc.Array) []*mlxc.Array {
			return []*mlxc.Array{c.reduced(mlxc.CrossEntropy(in[0].MatMul(in[1].Transpose()), in[2]))}
		}
		product := 2 * float64(oracle.Size(c.targets)) * float64(c.v) * float64(c.width)
		cases = append(cases, BenchCase{
			Case: built,
			// The logits, and a product each for dh and dw.
			FLOPs:      map[report.Pass]float64{report.Backward: 2 * product, report.Step: 3 * product},
			Deviations: map[string]float64{"w": 1 / math.Sqrt(float64(c.width))},
		})
	}
	return cases
}

func attentionBenches(attentions []attentionCase) []BenchCase {
	var cases []BenchCase
	for _, c := range attentions {
		forward, backward := c.flops()
		b := BenchCase{
			Case:  c.build(),
			FLOPs: map[report.Pass]float64{report.Backward: backward, report.Step: forward + backward},
		}
		if c.queries > 8192 {
			// In float32 MLX holds all scores several times, more than a GPU has.
			b.DTypes = []mlxc.DType{mlxc.Float16, mlxc.BFloat16}
		}
		cases = append(cases, b)
	}
	return cases
}

// flops counts what a fused attention computes, as is usual: two products forward; backward three more and
// the scores once again. Pairs that are causally hidden do not count, and those that a mask hides do.
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

// elements counts those of the largest array.
func (c BenchCase) elements() int {
	largest := 0
	for _, in := range c.Inputs {
		largest = max(largest, oracle.Size(in.Shape))
	}
	for _, out := range c.Outputs {
		largest = max(largest, oracle.Size(out.Shape))
	}
	return largest
}

// bytes counts those that a pass must move, each once; 0 if FLOPs are what takes time.
func (c BenchCase) bytes(pass report.Pass, dtype mlxc.DType) int {
	total := 0
	for _, name := range c.Moved[pass] {
		total += c.sizeOf(name, dtype)
	}
	return total
}

// sizeOf is the size in bytes of the array of a name.
func (c BenchCase) sizeOf(name string, dtype mlxc.DType) int {
	// A cotangent is like its output, a gradient like its input.
	for _, candidate := range []string{name, strings.TrimPrefix(name, "d")} {
		if i := slices.IndexFunc(c.Inputs, func(in Input) bool { return in.Name == candidate }); i >= 0 {
			return oracle.Size(c.Inputs[i].Shape) * c.Inputs[i].Kind.dtype(dtype).Size()
		}
		if i := slices.IndexFunc(c.Outputs, func(out Output) bool { return out.Name == candidate }); i >= 0 {
			return oracle.Size(c.Outputs[i].Shape) * c.Outputs[i].dtype(dtype).Size()
		}
	}
	panic("compare: no array " + name + " in " + c.Name) // A test asks for all names.
}

// largestMoved is the number of elements of the largest array that a pass moves.
func (c BenchCase) largestMoved(pass report.Pass, dtype mlxc.DType) int {
	largest := slices.MaxFunc(c.Moved[pass], func(a, b string) int {
		return cmp.Compare(c.sizeOf(a, dtype), c.sizeOf(b, dtype))
	})
	return c.sizeOf(largest, dtype) / dtype.Size()
}
