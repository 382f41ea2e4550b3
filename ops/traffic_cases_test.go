package ops

import (
	"fmt"
	"slices"

	"github.com/mlxgrad/mlxgrad/customkernels"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// A trafficCase is an operation whose traffic, in the geometry of Apple GPUs, is held
// to a limit.
type trafficCase struct {
	name string
	run  func(on target, dtype mlxc.DType)
	// compulsory is the number of elements of T that must cross once: all that is read or written, without
	// small arrays.
	compulsory int
	// again is the number of elements of T that are read once more while a cache has them.
	again int
	limit float64
	// kernel begins the names of kernels whose launches are counted, instead of all. model replaces compulsory
	// and again, in bytes, for a T of a size.
	kernel string
	model  func(kernel string, l customkernels.Launch, size int) (compulsory, again int)
}

func trafficCases() []trafficCase {
	return slices.Concat(rowTraffic(), crossEntropyTraffic(), embeddingTraffic(), transposeTraffic(), attentionTraffic())
}

// rowTraffic is that of the operations on rows, at the three sizes that matter: many
// more rows than threadgroups, few rows, and rows that a threadgroup of the norms cannot
// hold.
func rowTraffic() []trafficCase {
	type rowOp struct {
		name          string
		moved         int // arrays of x's size
		run           func(on target, in rowInputs)
		many, few, by float64 // limits; by for wide rows
	}
	var cases []trafficCase
	for _, op := range []rowOp{
		{"RMSNorm backward", 3, func(on target, in rowInputs) {
			rmsNormBackward(on, in.x, in.weight, in.dy, caseEps)
		}, 1.10, 1.35, 1.75},
		{"AddRMSNorm backward", 4, func(on target, in rowInputs) {
			rmsNormBackwardWithSum(on, in.x, in.weight, in.dy, in.normal(4, in.x.Shape()...), caseEps)
		}, 1.10, 1.35, 1.75},
		{"RMSNorm backward, separate", 3, func(on target, in rowInputs) {
			rmsNormBackwardSeparate(on, in.x, in.weight, in.dy, caseEps)
		}, 2.05, 2.05, 3.05},
		{"RMSNormResidual forward", 3, func(on target, in rowInputs) {
			residualForward(on, "rms_norm_residual", 1, []*mlxc.Array{in.x, in.dy, in.weight}, caseEps)
		}, 1.10, 1.10, 1.75},
		{"AddRMSNorm forward", 4, func(on target, in rowInputs) {
			residualForward(on, "add_rms_norm", 2, []*mlxc.Array{in.x, in.dy, in.weight}, caseEps)
		}, 1.10, 1.10, 1.75},
		{"LayerNorm backward", 3, func(on target, in rowInputs) {
			layerNormBackward(on, in.x, in.weight, in.weight, in.dy, caseEps)
		}, 1.10, 1.35, 1.75},
		{"LayerNorm backward, separate", 3, func(on target, in rowInputs) {
			layerNormBackwardSeparate(on, in.x, in.weight, in.weight, in.dy, caseEps)
		}, 1.70, 1.70, 2.60},
		{"Softmax backward", 3, func(on target, in rowInputs) {
			softmaxBackward(on, in.x, in.dy)
		}, 1.05, 1.05, 1.05},
	} {
		for _, size := range []struct {
			rows, width int
			limit       float64
		}{{16384, 128, op.many}, {199, 4096, op.few}, {256, 16384, op.by}} {
			cases = append(cases, trafficCase{
				name: fmt.Sprintf("%s, %dx%d", op.name, size.rows, size.width),
				run: func(on target, dtype mlxc.DType) {
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
	return cases
}

// crossEntropyTraffic has rows that a threadgroup's registers hold, and such of which they
// hold the last 16,384 elements: the others are read again for the gradient.
func crossEntropyTraffic() []trafficCase {
	var cases []trafficCase
	for _, s := range [][2]int{{2048, 1000}, {4, 16384}, {4, 32768}} {
		rows, width := s[0], s[1]
		inputs := func(dtype mlxc.DType) (logits, targets *mlxc.Array) {
			return mlxc.RandomNormal(mlxc.RandomKey(1), dtype, rows, width),
				mlxc.Arange(mlxc.Int32, 0, float64(rows), 1).Remainder(mlxc.Scalar(int32(width)))
		}
		cases = append(cases, trafficCase{
			name: fmt.Sprintf("CrossEntropy with its gradient, %dx%d", rows, width),
			run: func(on target, dtype mlxc.DType) {
				logits, targets := inputs(dtype)
				crossEntropyForward(on, logits, targets, CrossEntropyConfig{}, true)
			},
			compulsory: 2 * rows * width,
			again:      rows * ((width - 1) / 16384 * 16384),
			limit:      1.05,
		}, trafficCase{
			name: fmt.Sprintf("CrossEntropy forward and backward, %dx%d", rows, width),
			run: func(on target, dtype mlxc.DType) {
				logits, targets := inputs(dtype)
				cfg := CrossEntropyConfig{Reduction: None}
				outputs := crossEntropyForward(on, logits, targets, cfg, false)
				crossEntropyBackward(on, logits, targets, mlxc.Ones(mlxc.Float32, rows), outputs, cfg)
			},
			compulsory: 3 * rows * width,
			limit:      1.05,
		})
	}
	return cases
}

// embeddingTraffic has tokens that are fewer than the rows of the table, that all have
// one id, that share some, and that have one each.
func embeddingTraffic() []trafficCase {
	var cases []trafficCase
	for _, s := range [][3]int{{128, 1024, 1024}, {1024, 1, 512}, {512, 64, 512}, {512, 512, 512}} {
		tokens, vocabulary, width := s[0], s[1], s[2]
		ids := func() *mlxc.Array {
			return mlxc.Arange(mlxc.Uint32, 0, float64(tokens), 1).Remainder(mlxc.Scalar(uint32(vocabulary)))
		}
		shape := fmt.Sprintf("%d of %dx%d", tokens, vocabulary, width)
		cases = append(cases, trafficCase{
			name: "Embedding forward, " + shape,
			run: func(on target, dtype mlxc.DType) {
				embeddingForward(on, mlxc.RandomNormal(mlxc.RandomKey(1), dtype, vocabulary, width), ids())
			},
			compulsory: 2 * tokens * width,
			limit:      1.10,
		}, trafficCase{
			name: "Embedding backward, " + shape,
			run: func(on target, dtype mlxc.DType) {
				embeddingBackward(on, mlxc.RandomNormal(mlxc.RandomKey(1), dtype, tokens, width), ids(), vocabulary)
			},
			compulsory: (tokens + vocabulary) * width,
			limit:      1.10,
		})
	}
	return cases
}

// transposeTraffic has tiles that are whole and that are not, and matrices without tiles.
func transposeTraffic() []trafficCase {
	var cases []trafficCase
	for _, s := range [][3]int{{1, 512, 1024}, {8, 128, 64}, {2, 37, 129}, {1, 130, 70}, {3, 36, 100}, {2, 4096, 3}} {
		cases = append(cases, trafficCase{
			name: fmt.Sprintf("Transpose2D, %d of %dx%d", s[0], s[1], s[2]),
			run: func(on target, dtype mlxc.DType) {
				transpose(on, mlxc.RandomNormal(mlxc.RandomKey(1), dtype, s[0], s[1], s[2]))
			},
			compulsory: 2 * s[0] * s[1] * s[2],
			limit:      1.00,
		})
	}
	return cases
}

// attentionTraffic has each kernel of attention, with heads that share keys. A threadgroup reads its own rows
// once, and all rows of the other side that one of its own sees: these the other threadgroups read again.
func attentionTraffic() []trafficCase {
	const heads, keyHeads, length, width = 2, 1, 128, 64
	// Elements: the rows of q and dout (or out and dout) of all heads, and those of k and v.
	const ofQueries, ofKeys = heads * length * 2 * width, keyHeads * length * 2 * width
	// Bytes: m and l of all rows, these and delta, dlse, and a mask of float32.
	const statistics, rows, dlse, mask = heads * length * 2 * 4, heads * length * rowSize * 4, heads * length * 4, length * length * 4

	// reads is the number of rows of the other side that the threadgroups of a head read.
	reads := func(l customkernels.Launch, causal, byKeys bool) (n int) {
		g := templateOf(l)
		own := g["M"] * g["SIMDGROUPS"]
		for first := 0; first < length; first += own {
			switch {
			case !causal:
				n += length
			case byKeys: // from the panel of the first query that sees the first key
				n += length - first/g["N"]*g["N"]
			default: // to the panel of the last key that the last query sees
				n += min((first+own+g["N"]-1)/g["N"]*g["N"], length)
			}
		}
		return n
	}
	model := func(c attentionLaunch) func(kernel string, l customkernels.Launch, size int) (compulsory, again int) {
		causal, maskOnce, maskAgain := c.cfg.Causal, 0, 0
		if c.maskDType == mlxc.Float32 {
			maskOnce, maskAgain = mask, (heads-1)*mask
		}
		return func(kernel string, l customkernels.Launch, size int) (compulsory, again int) {
			byQueries := func() int { return (heads*reads(l, causal, false)*2*width-ofKeys)*size + maskAgain }
			switch kernel {
			case "attention_forward":
				return maskOnce + (ofQueries+ofKeys)*size + statistics, byQueries()
			case "attention_delta":
				return maskOnce + (ofQueries+ofKeys)*size + statistics + dlse + rows, byQueries()
			case "attention_delta_of_output":
				return ofQueries*size + statistics + dlse + rows, 0
			case "attention_dq":
				return maskOnce + (ofQueries*3/2+ofKeys)*size + rows, byQueries()
			case "attention_dkv":
				return maskOnce + (ofQueries+2*ofKeys)*size + rows,
					heads*reads(l, causal, true)*(2*width*size+rowSize*4) - ofQueries*size - rows + maskAgain
			case "attention_dmask": // a threadgroup has M×N elements, and walks over the heads
				g := templateOf(l)
				across, down := (length+g["N"]-1)/g["N"], (length+g["M"]-1)/g["M"]
				return 2*maskOnce + (ofQueries+ofKeys)*size + rows,
					(across-1)*(ofQueries*size+rows) + (heads*down-keyHeads)*ofKeys/keyHeads*size + maskAgain
			default: // attention_mask_bits
				return length*length + 2*length*length/8, 0
			}
		}
	}
	// Every thread reads the 48 bytes of Sizes, which counts most in the smallest kernels.
	limits := map[string]float64{"forward": 1.30, "delta": 1.30, "dq": 1.30, "dkv": 1.10, "dmask": 1.50, "mask_bits": 2.65}
	var cases []trafficCase
	for _, c := range []struct {
		attentionLaunch
		kernels []string
	}{
		{attentionLaunch{name: "all keys"}, []string{"forward", "delta", "dq", "dkv"}},
		{attentionLaunch{name: "causal", cfg: AttentionConfig{Causal: true}}, []string{"forward", "dq", "dkv"}},
		{attentionLaunch{name: "mask", mask: []int{length, length}, maskDType: mlxc.Float32}, []string{"forward", "delta", "dq", "dkv", "dmask"}},
		{attentionLaunch{name: "booleans", mask: []int{length, length}, maskDType: mlxc.Bool}, []string{"mask_bits"}},
	} {
		c.shape = [7]int{1, heads, keyHeads, length, length, width, width}
		for _, kernel := range c.kernels {
			cases = append(cases, trafficCase{
				name: fmt.Sprintf("Attention %s, %s", kernel, c.name), run: c.run, limit: limits[kernel],
				kernel: "attention_" + kernel, model: model(c.attentionLaunch),
			})
		}
	}
	return cases
}

// templateOf returns the integers among a launch's template arguments.
func templateOf(l customkernels.Launch) map[string]int {
	values := map[string]int{}
	for _, a := range l.Template {
		if n, ok := a.Value.(int); ok {
			values[a.Name] = n
		}
	}
	return values
}
