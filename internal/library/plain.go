//go:build !asan

package library

// flavor is the end of the library's name.
const flavor = ""
