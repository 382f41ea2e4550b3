package ops

import (
	"fmt"

	"github.com/mlxgrad/mlxgrad/customkernels"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

var _ = describe(descriptor{
	operations: []string{"attention"},
	kernels: []kernelTest{
		{name: "attention_forward"},
		{name: "attention_delta", unused: notOn(mlxc.BackendCPU), sameHelpers: true},
		{name: "attention_delta_of_output", unused: func(b mlxc.Backend, dtype mlxc.DType) bool {
			return b == mlxc.BackendCPU || dtype == mlxc.Float32 // in float32 only wide heads on CUDA launch it
		}},
		{name: "attention_dq", unused: notOn(mlxc.BackendCPU), sameHelpers: true},
		{name: "attention_dkv", unused: notOn(mlxc.BackendCPU)},
		{name: "attention_gradients", unused: onlyOn(mlxc.BackendCPU)},
		{name: "attention_dmask"},
		{name: "attention_mask_bits", unused: notOn(mlxc.BackendCPU)}, // the kernels for a CPU read booleans
	},
	traffic: attentionTraffic,
	builds: func() []buildBench {
		heads := normal(5, mlxc.Float32, 1, 2, 16, 32)
		return []buildBench{{
			"Attention",
			func(a arrays) arrays {
				return arrays{Attention(a[0], a[1], a[2], AttentionConfig{Scale: 0.1, Causal: true})}
			},
			arrays{heads, heads, heads},
			arrays{heads},
		}, {
			"Attention/mlx",
			func(a arrays) arrays {
				c := mlxc.AttentionConfig{Scale: 0.1, Causal: true}
				return arrays{mlxc.ScaledDotProductAttention(a[0], a[1], a[2], c)}
			},
			arrays{heads, heads, heads},
			arrays{heads},
		}}
	},
})

// attentionTraffic returns a case for each kernel of attention, with heads that share keys. A threadgroup reads its own
// rows once, and every row of the other side that one of its rows sees. Other threadgroups read these rows again.
func attentionTraffic() []trafficCase {
	const heads, keyHeads, length, width = 2, 1, 128, 64
	// Elements of q and dout (or out and dout) of all heads, and of k and v.
	const ofQueries, ofKeys = heads * length * 2 * width, keyHeads * length * 2 * width
	// Bytes of m and l, of RowStats, of dlse, and of a mask of float32.
	const statistics, rows, dlse = heads * length * 2 * 4, heads * length * rowStatsSize * 4, heads * length * 4
	const mask = length * length * 4

	// reads returns the number of rows of the other side that the threadgroups of a head read.
	reads := func(l customkernels.Launch, causal, byKeys bool) (n int) {
		g := templateOf(l)
		own := g["BLOCK_M"] * g["SIMDGROUPS"]
		for first := 0; first < length; first += own {
			switch {
			case !causal:
				n += length
			case byKeys: // from the panel of the first query that sees the first key
				n += length - first/g["BLOCK_N"]*g["BLOCK_N"]
			default: // to the panel of the last key that the last query sees
				n += min((first+own+g["BLOCK_N"]-1)/g["BLOCK_N"]*g["BLOCK_N"], length)
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
					heads*reads(l, causal, true)*(2*width*size+rowStatsSize*4) - ofQueries*size - rows + maskAgain
			case "attention_dmask": // a threadgroup owns BLOCK_M×BLOCK_N elements and iterates over the heads
				g := templateOf(l)
				across, down := (length+g["BLOCK_N"]-1)/g["BLOCK_N"], (length+g["BLOCK_M"]-1)/g["BLOCK_M"]
				return 2*maskOnce + (ofQueries+ofKeys)*size + rows,
					(across-1)*(ofQueries*size+rows) + (heads*down-keyHeads)*ofKeys/keyHeads*size + maskAgain
			default: // attention_mask_bits
				return length*length + 2*length*length/8, 0
			}
		}
	}
	// Every thread reads the 32 bytes of Sizes, and with a mask 16 more. Their share is largest in the smallest kernels.
	limits := map[string]float64{
		"forward": 1.30, "delta": 1.30, "dq": 1.30, "dkv": 1.10, "dmask": 1.50, "mask_bits": 2.65,
	}
	var cases []trafficCase
	for _, c := range []struct {
		attentionLaunch
		kernels []string
	}{
		{attentionLaunch{name: "all keys"}, []string{"forward", "delta", "dq", "dkv"}},
		{attentionLaunch{name: "causal", cfg: AttentionConfig{Causal: true}}, []string{"forward", "dq", "dkv"}},
		{
			attentionLaunch{name: "mask", mask: []int{length, length}, maskDType: mlxc.Float32},
			[]string{"forward", "delta", "dq", "dkv", "dmask"},
		},
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
