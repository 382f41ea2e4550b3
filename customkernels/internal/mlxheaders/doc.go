// Package mlxheaders tests that the host executor compiles and runs MLX's own Metal kernels.
package mlxheaders
