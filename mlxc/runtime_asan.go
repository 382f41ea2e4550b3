//go:build asan

package mlxc

/*
// AddressSanitizer looks up C++ functions, which libmlxg uses, when the program starts.
#cgo LDFLAGS: -Wl,--no-as-needed -lstdc++

// A stream lives as long as the process. Its handle of twelve bytes does too, because an operation may hold a copy.
const char* __lsan_default_suppressions(void) { return "leak:mlx_stream_new_thread_unsafe\n"; }

// allocator_may_return_null: a failed allocation is an error of its operation. By default, AddressSanitizer would end
// the process.
//
// intercept_tls_get_addr=0: the leak check does not follow the thread-local memory of loaded libraries by itself. In
// the runtime of GCC 12 it reads invalid addresses there after threads have ended, and crashes.
const char* __asan_default_options(void) { return "allocator_may_return_null=1:intercept_tls_get_addr=0"; }
*/
import "C"
