package faults

var memory = Area{"Memory", []Fault{
	{
		Name:  "size-overflow",
		Title: "The number of elements overflows 64 bits",
		Wrong: "An array of 65536×65536×65536×65536 elements has the size 0. Kernels write to memory of that " +
			"size.",
		Right:  "An error.",
		Guards: []Guard{{"mlxc/libmlxg/mlxg_result.cpp", "oversized"}, {"mlxc/array_new.go", "maxBytes"}},
	},
	{
		Name:   "out-of-memory",
		Title:  "An allocation that fails ends the process",
		Wrong:  "The allocator returns a null buffer, and operations write to it.",
		Right:  "An error.",
		Crash:  true,
		Guards: []Guard{{"mlxc/libmlxg/mlxg_memory.cpp", "checked_malloc"}},
	},
}}
