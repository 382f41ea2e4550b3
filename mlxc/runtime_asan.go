//go:build asan

package mlxc

/*
// The address sanitizer looks for C++'s functions, which libmlxg uses, when the program begins.
#cgo LDFLAGS: -Wl,--no-as-needed -lstdc++

// A stream lives as long as the process, and so does its handle of twelve bytes: an
// operation may still hold a copy.
const char* __lsan_default_suppressions(void) { return "leak:mlx_stream_new_thread_unsafe\n"; }

// An allocation that fails is an error of its operation. The address sanitizer would end
// the process instead.
const char* __asan_default_options(void) { return "allocator_may_return_null=1"; }
*/
import "C"
