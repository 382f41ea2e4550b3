//go:build asan

package library

// flavor is the end of the library's name. The library is compiled with AddressSanitizer, like the program.
const flavor = "-asan"
