// Package mlxio reads and writes arrays of package mlxc in the formats safetensors, NumPy's .npy, and GGUF.
//
// Each format has four functions. Load and Save take a path; Read takes an [io.Reader]; Write takes an [io.Writer].
// Load returns lazy arrays, which read their elements from the file when they are evaluated. Read reads all elements
// before it returns. Save replaces the file atomically. Any goroutine may call any function, and use the returned
// arrays.
//
// The package parses the formats itself and uses MLX only to unpack quantized GGUF tensors, since MLX's parsers trust
// the sizes and offsets of a file and its reader discards read errors. Lengths are checked before memory is allocated
// for them, so a malformed file causes an error and nothing else.
package mlxio
