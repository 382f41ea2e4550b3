//go:build asan

package library

// flavor ends the name of the library, which is compiled with the address sanitizer too.
const flavor = "-asan"
