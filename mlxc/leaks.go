//go:build asan

package mlxc

// A Stream is for the life of the process, as MLX's own streams are, and its handle of
// twelve bytes with it: whoever still runs on it may have a copy.

/*
const char* __lsan_default_suppressions(void) { return "leak:mlx_stream_new_thread_unsafe\n"; }
*/
import "C"
