package ops

import (
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
