package faults

var transforms = Area{"Transforms", []Fault{
	{
		Name:  "vmap-custom-vjp",
		Title: "vmap drops custom gradients",
		Wrong: "Under vmap, a custom function is differentiated as its forward computation. Its vjp and jvp are " +
			"not called.",
		Right:  "The mapped vjp or jvp.",
		Guards: []Guard{{"mlxc/libmlxg/mlxg_custom.cpp", "with_rules"}},
	},
	{
		Name:  "vmap-not-equal-axes",
		Title: "vmap of not_equal returns the axes of the operands",
		Wrong: "With operands of different numbers of axes, the mapped axis of the result is at the wrong " +
			"position.",
		Right:  "The mapped axis comes first.",
		Guards: []Guard{{"mlxc/libmlxg/mlxg_vmap.cpp", "apply"}},
	},
	{
		Name:   "vmap-expand-dims-axes",
		Title:  "vmap of expand_dims and squeeze over the last axis mixes up the axes",
		Wrong:  "With a mapped axis behind the new axes, the axes of the result have the wrong order.",
		Right:  "The result for each element, stacked.",
		Guards: []Guard{{"mlxc/libmlxg/mlxg_vmap.cpp", "graph_vmapper"}},
	},
	{
		Name:   "vmap-slice-update",
		Title:  "vmap of slice_update writes an unmapped update to the first element only",
		Wrong:  "Other elements keep their values.",
		Right:  "The update in each element.",
		Guards: []Guard{{"mlxc/libmlxg/mlxg_vmap.cpp", "apply"}},
	},
	{
		Name:   "vmap-slice-update-dynamic",
		Title:  "vmap of a dynamic slice_update writes an unmapped update to the first element only",
		Wrong:  "Other elements keep their values.",
		Right:  "The update in each element.",
		Guards: []Guard{{"mlxc/libmlxg/mlxg_vmap.cpp", "apply"}},
	},
	{
		Name:   "vmap-conv-groups",
		Title:  "vmap of a convolution over its weight confuses groups",
		Wrong:  "With more than one group, channels are convolved with the kernels of other groups.",
		Right:  "The result for each weight, stacked.",
		Guards: []Guard{{"mlxc/libmlxg/mlxg_vmap.cpp", "apply"}},
		Cost:   "the input is repeated for each weight",
	},
	{
		Name:   "vmap-depends",
		Title:  "depends has no rule for vmap",
		Wrong:  "\"[Primitive::vmap] Not implemented for Depends\".",
		Right:  "The mapped array.",
		Guards: []Guard{{"mlxc/libmlxg/mlxg_vmap.cpp", "apply"}},
	},
	{
		Name:   "vmap-triangular-inverse",
		Title:  "vmap of tri_inv inverts the whole matrix",
		Wrong:  "The other triangle is read. cholesky_inv and solve_triangular use tri_inv and are wrong, too.",
		Right:  "The inverse of the triangle.",
		Guards: []Guard{{"mlxc/libmlxg/mlxg_vmap.cpp", "apply"}},
	},
	{
		Name:  "compile-keeps-operands",
		Title: "A compiled function with a split keeps its operands forever",
		Wrong: "The outputs of a node with several outputs refer to each other. The traced graph is dropped " +
			"without breaking the cycle, so captured arrays are never freed.",
		Right:  "Captured arrays are freed with the function.",
		Gone:   "0.32.3",
		Guards: []Guard{{"mlxc/libmlxg/mlxg_internal.h", "sibling_cycles"}},
	},
	{
		Name:   "compile-complex-nan",
		Title:  "A compiled function cannot have a complex constant that is NaN or infinite",
		Wrong:  "The constant is printed into the code of the fused kernel as nan or inf, and the C++ compiler fails.",
		Right:  "The constant, as for real dtypes.",
		Guards: []Guard{{"mlxc/libmlxg/mlxg_compile.cpp", "unfuse_constants"}},
	},
}}
