//go:build !cgo

package mlxc

// MLX is reached through C. This is the first line that a compiler without C reads of
// the package, and its message: files come in the order of their names.
var _ = this_package_calls_C__set_CGO_ENABLED_to_1_and_install_a_C_and_a_CXX_compiler
