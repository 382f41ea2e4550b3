//go:build asan

package mlxc

/*
// AddressSanitizer looks up C++ functions, which libmlxg uses, when the program starts.
#cgo LDFLAGS: -Wl,--no-as-needed -lstdc++

// A stream lives as long as the process. Its handle of twelve bytes does too, because an operation may hold a copy.
const char* __lsan_default_suppressions(void) { return "leak:mlx_stream_new_thread_unsafe\n"; }

// A failed allocation is an error of its operation. By default, AddressSanitizer would end the process.
const char* __asan_default_options(void) { return "allocator_may_return_null=1"; }
*/
import "C"
