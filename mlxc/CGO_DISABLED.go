//go:build !cgo

package mlxc

// This package needs cgo. Without cgo, the undefined type below is the compiler's first error, and its name says how to
// enable cgo. The compiler checks types before other declarations, and files in the order of their names: the name of
// this file therefore begins with a capital letter.
type _ struct {
	_ this_package_calls_C__set_CGO_ENABLED_to_1_and_install_a_C_compiler
}
