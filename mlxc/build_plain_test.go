//go:build !race && !asan && !msan

package mlxc_test

const instrumented = false
