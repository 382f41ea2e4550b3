//go:build !cgo

package mlxc

// MLX is reached through C. This is the first type that a compiler without C checks in the
// package, and its message: types come before the rest, and files in the order of their names.
type _ struct {
	_ this_package_calls_C__set_CGO_ENABLED_to_1_and_install_a_C_compiler
}
