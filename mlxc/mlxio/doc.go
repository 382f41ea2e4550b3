// Package mlxio reads and writes arrays of package mlxc in the formats safetensors, NumPy's .npy, and GGUF.
//
// For each format, Load and Save take a path, Read and Write an [io.Reader] and an [io.Writer]. Load returns lazy
// arrays, which read their elements from the file when they are evaluated; Read reads all elements at once. Save
// replaces the file as a whole. Any goroutine may call any function, and use the returned arrays.
//
// The package parses the formats itself and uses MLX only to unpack quantized GGUF tensors, since MLX's
// parsers trust the sizes and offsets of a file and its reader loses read errors. A header is checked before memory
// is allocated for it, so a malformed file causes an error and nothing else.
package mlxio
