package ops

import (
	"fmt"

	"github.com/mlxgrad/mlxgrad/customkernels"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

var _ = describe(descriptor{
	operations: []string{"ssm_scan"},
	kernels: []kernelTest{
		{name: "ssm_step_decays"},
		{name: "ssm_decay_backward"},
		{name: "ssm_states"},
		{name: "ssm_state_gradients"},
		{name: "ssm_output"},
		{name: "ssm_dx"},
		{name: "ssm_db", sameHelpers: true},
		{name: "ssm_dc", sameHelpers: true},
		{name: "ssm_decay_terms"},
	},
	traffic: ssmTraffic,
	builds: func() []buildBench {
		x, b := normal(1, mlxc.Float32, 1, 16, 2, 32), normal(2, mlxc.Float32, 1, 16, 1, 32)
		dt, a := normal(3, mlxc.Float32, 1, 16, 2).Square(), normal(4, mlxc.Float32, 2).Square().Neg()
		return []buildBench{{
			"SSMScan",
			func(a arrays) arrays {
				y, state := SSMScan(a[0], a[1], a[2], a[3], a[4], SSMScanConfig{})
				return arrays{y, state}
			},
			arrays{x, dt, a, b, b},
			arrays{x, normal(5, mlxc.Float32, 1, 2, 32, 32)},
		}}
	},
})

// ssmTraffic returns a case for each kernel, with two heads that share a group and two chunks. Each lane reads the
// StepDecays of its rows and, for every tile, of its columns.
func ssmTraffic() []trafficCase {
	const heads, length, width = 2, 128, 64
	const states = heads * width * width * 4 // bytes of a chunk's
	model := func(kernel string, l customkernels.Launch, size int) (compulsory, again int) {
		g := templateOf(l)
		chunks := length / g["CHUNK"]
		x, b := heads*length*width*size, length*width*size // bytes of x, and of B
		// A kernel reads 12 bytes of a StepDecay, or 8 if it needs only the sum.
		decays, steps := heads*length*12, heads*length*4
		parts := 0 // floats that ssm_decay_terms writes
		for row := g["BLOCK_M"]; row <= g["CHUNK"]; row += max(g["BLOCK_M"], 1) {
			parts += row * heads * chunks
		}
		// of a threadgroup, which has all steps of a chunk: visits of simdgroups to panels, and bytes of StepDecays
		visits := 0
		for s := range g["SIMDGROUPS"] {
			visits += ((s+1)*g["BLOCK_M"] + g["BLOCK_N"] - 1) / max(g["BLOCK_N"], 1)
		}
		groups, threads := heads*chunks*g["LANES"], g["LANES"]*g["SIMDGROUPS"]
		ofRows, ofColumns := groups*g["SIMDGROUPS"]*g["BLOCK_M"]/8, groups*visits*g["BLOCK_N"]/4
		earlier := 8*ofRows + 12*ofColumns
		later := 12*ofRows + 8*ofColumns + 8*groups*g["SIMDGROUPS"]
		ofSteps := heads * length / max(g["BLOCK_N"], 1) * threads // once for each panel
		switch kernel {
		case "ssm_step_decays":
			return steps + heads*length*stepDecaySize*4, 0
		case "ssm_decay_backward":
			return 6*steps + 4*parts + chunks*heads*width*4, 2 * steps
		case "ssm_states":
			return x + b + chunks*states + 2*states + decays, (heads-1)*b + ofSteps*(12*g["BLOCK_N"]/4+8) - decays
		case "ssm_state_gradients":
			return x + b + 2*chunks*states + 2*states + decays + chunks*heads*width*4,
				(heads-1)*b + ofSteps*8*g["BLOCK_N"]/4 - decays
		case "ssm_output": // C for both products, and x also for D
			return 2*x + 2*b + chunks*states + decays, x + (3*heads-2)*b + earlier - decays
		case "ssm_dx": // B for both products, x for three sums, dy for three
			return 3*x + 2*b + chunks*states + decays + heads*length*stepTermsSize*4, 4*x + (3*heads-2)*b + later - decays
		case "ssm_db": // x for both products
			return 2*x + b + chunks*states + decays + 2*length*width*4, x + (heads-1)*b + later - decays
		case "ssm_dc": // dy for both products
			return 2*x + 2*b + chunks*states + decays + steps + 2*length*width*4, x + 2*(heads-1)*b + earlier - decays
		default: // ssm_decay_terms
			return 2*x + 2*b + decays + 4*parts, 2*(heads-1)*b + earlier - decays
		}
	}
	c := ssmLaunch{shape: [6]int{1, length, heads, 1, width, width}, d: true, state: true}
	// Every thread reads the 24 bytes of ChunkSizes. Their share is largest in the smallest kernels.
	limits := map[string]float64{
		"step_decays": 1.55, "decay_backward": 1.30, "states": 1.15, "state_gradients": 1.20, "output": 1.15, "dx": 1.15,
		"db": 1.15, "dc": 1.15, "decay_terms": 1.20,
	}
	var cases []trafficCase
	for _, name := range []string{
		"step_decays", "decay_backward", "states", "state_gradients", "output", "dx", "db", "dc", "decay_terms",
	} {
		cases = append(cases, trafficCase{
			name: fmt.Sprintf("SSMScan %s", name), run: c.run, limit: limits[name], kernel: "ssm_" + name, model: model,
		})
	}
	return cases
}
