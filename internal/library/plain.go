//go:build !asan

package library

// flavor ends the name of the library.
const flavor = ""
