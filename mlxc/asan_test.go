//go:build asan

package mlxc_test

import "testing"

// endsGoroutine is called by tests that end a goroutine in a function that MLX called.
// What the C++ frames above held, which then never return, is lost, and the address
// sanitizer says so.
func endsGoroutine(t *testing.T) { t.Skip("it loses memory, as it has to") }
