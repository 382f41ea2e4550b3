//go:build race || asan || msan

package mlxc_test

// instrumented tells that what watches the program needs memory of its own, and time.
const instrumented = true
