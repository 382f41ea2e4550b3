package ops

var _ = describe(descriptor{kernels: []kernelTest{
	{name: "column_sum", variants: columnSumVariants}, {name: "column_sum_pair", variants: columnSumVariants},
}})
