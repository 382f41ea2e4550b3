//go:build !asan

package mlxc_test

import "testing"

func endsGoroutine(*testing.T) {}
