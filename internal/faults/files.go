package faults

var files = Area{"Files", []Fault{
	{
		Name:   "npy-truncated",
		Title:  "A truncated .npy file loads without an error",
		Wrong:  "Load discards the read error, and the array holds undefined memory.",
		Right:  "An error.",
		Gone:   "0.32.4",
		Guards: []Guard{{"mlxc/libmlxg/mlxg_io.cpp", "load"}},
	},
	{
		Name:   "gguf-opened-for-writing",
		Title:  "GGUF files are opened for writing",
		Wrong:  "A file without write permission cannot be read (\"gguf_init failed\").",
		Right:  "Files are opened for reading.",
		Guards: []Guard{{"mlxc/mlxio/gguf_quantized.go", "unpack"}},
	},
	{
		Name:   "gguf-bfloat16",
		Title:  "BF16 tensors of GGUF files become float16",
		Wrong:  "Numbers above 65504 become infinite.",
		Right:  "bfloat16.",
		Guards: []Guard{{"mlxc/mlxio/gguf.go", "ggufTypes"}},
	},
	{
		Name:   "gguf-q4-k-scales",
		Title:  "Every second group of a Q4_K tensor has the scale of the group before it",
		Wrong:  "Groups 1, 3, 5 and 7 of a block are read with the scales and minima of groups 0, 2, 4 and 6.",
		Right:  "Eight scales and minima, as in ggml.",
		Guards: []Guard{{"mlxc/mlxio/gguf_quantized.go", "asQ4_1"}},
		Cost:   "one conversion of each block",
	},
}}
