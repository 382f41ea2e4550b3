package ops

var _ = describe(descriptor{
	operations: []string{"ssm_scan"},
	kernels: []kernelTest{
		{name: "ssm_decay"},
		{name: "ssm_decay_backward"},
		{name: "ssm_states"},
		{name: "ssm_state_gradients"},
		{name: "ssm_output"},
		{name: "ssm_dx"},
		{name: "ssm_db"},
		{name: "ssm_dc"},
		{name: "ssm_decay_terms"},
	},
})
