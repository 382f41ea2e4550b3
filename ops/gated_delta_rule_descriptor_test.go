package ops

import (
	"fmt"

	"github.com/mlxgrad/mlxgrad/customkernels"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

var _ = describe(descriptor{
	operations: []string{"gated_delta_rule"},
	kernels: []kernelTest{
		{name: "gated_delta_chunks"},
		{name: "gated_delta_states"},
		{name: "gated_delta_output"},
		{name: "gated_delta_state_gradients"},
		{name: "gated_delta_gradients"},
		{name: "gated_delta_step"},
	},
	traffic: gatedDeltaTraffic,
	builds: func() []buildBench {
		heads, rows := normal(5, mlxc.Float32, 1, 2, 16, 32), normal(6, mlxc.Float32, 1, 2, 16)
		return []buildBench{{
			"GatedDeltaRule",
			func(a arrays) arrays {
				out, state := GatedDeltaRule(a[0], a[1], a[2], a[3], a[4], GatedDeltaRuleConfig{})
				return arrays{out, state}
			},
			arrays{heads, heads, heads, rows.Square().Neg(), rows.Sigmoid()},
			arrays{heads, normal(7, mlxc.Float32, 1, 2, 32, 32)},
		}}
	},
})

// gatedDeltaTraffic returns a case for each kernel, with heads that share q and k. Each block of columns reads the
// left-hand operands of its products again, and each simdgroup the numbers of the steps.
func gatedDeltaTraffic() []trafficCase {
	const heads, length, width = 2, 128, 64
	const float, state, arrays = 4, width * width, length * width // arrays: of one head
	model := func(kernel string, l customkernels.Launch, size int) (compulsory, again int) {
		g := templateOf(l)
		chunk, threads := g["CHUNK"], g["LANES"]*g["SIMDGROUPS"]
		if kernel == "gated_delta_step" {
			issued := heads * (3*state*float + width*(3*width+2)*size) // each thread reads all of k twice, and q
			compulsory = heads*(2*state*float+2*width*size) + 2*width*size
			return compulsory, issued - compulsory
		}
		chunks, square, rows := heads*length/chunk, chunk*chunk, chunk*width
		blocks, sums := width/g["HEAD_BLOCK"], width/chunk
		// Of a block of columns: its part of a state and of the rows of a chunk.
		states, part := state/blocks, rows/blocks
		decays := 2*square + 2*threads // b for each score
		var issued int
		switch kernel {
		case "gated_delta_chunks":
			compulsory = 2*arrays + chunks*(9*chunk+3*square+rows)
			inverse := chunk*(chunk-1)*(chunk-2)/6 + square
			issued = chunks * (11*chunk + 3*threads + 4*rows + 2*decays + 2*square + inverse + blocks*(2*square+threads) + 3*rows)
		case "gated_delta_states":
			compulsory = arrays + heads*arrays + chunks*(2*chunk+square+2*rows+state) + heads*2*state
			issued = heads*2*state + chunks*blocks*(3*rows+3*states+2*square+(3+sums)*part+2*threads)
		case "gated_delta_output":
			compulsory = arrays + chunks*(chunk+square+2*rows+state)
			issued = chunks * blocks * (rows + states + threads + square + 2*part)
		case "gated_delta_state_gradients":
			compulsory = 2*arrays + heads*arrays + chunks*(3*chunk+square+2*rows+state) + heads*2*state
			issued = heads*2*state + chunks*blocks*(4*rows+3*states+square+(2+2*sums)*part+2*threads)
		case "gated_delta_gradients":
			compulsory = 2*arrays + 2*heads*arrays + chunks*(9*chunk+4*square+6*rows+2*state)
			issued = chunks * (blocks*(square+threads) + 5*rows + // dR and dV
				4*rows + 2*decays + 3*square - chunk + // dP, dA and M
				blocks*(3*rows+4*threads+5*square) + 3*state + 12*rows + // dq and dk
				2*state + 3*chunk)
		}
		return compulsory * float, (issued - compulsory) * float
	}
	c := gatedDeltaLaunch{shape: [6]int{1, 1, heads, length, width, width}}
	forward := func(on target, dtype mlxc.DType) { gatedDeltaForward(on, c.inputs(dtype), 1) }
	var cases []trafficCase
	// Every thread reads the 24 bytes of ChunkSizes. Their share is largest in the smallest kernels.
	for _, k := range []struct {
		name  string
		run   func(on target, dtype mlxc.DType)
		limit float64
	}{
		{"chunks", forward, 1.20},
		{"states", forward, 1.10},
		{"output", forward, 1.20},
		{"state_gradients", c.run, 1.10},
		{"gradients", c.run, 1.05},
		{"step", c.run, 1.10},
	} {
		cases = append(cases, trafficCase{
			name: fmt.Sprintf("GatedDeltaRule %s", k.name), run: k.run, limit: k.limit,
			kernel: "gated_delta_" + k.name, model: model,
		})
	}
	return cases
}
