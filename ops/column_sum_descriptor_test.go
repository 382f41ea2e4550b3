package ops

var _ = describe(descriptor{kernels: []kernelTest{{name: "column_sum", variants: columnSumVariants}}})
