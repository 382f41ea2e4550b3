//go:build race || asan || msan

package mlxc_test

// instrumented is true if the race detector or a sanitizer adds memory and time.
const instrumented = true
