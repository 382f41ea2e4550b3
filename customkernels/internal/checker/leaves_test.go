package checker

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestLeavesEarly(t *testing.T) {
	const entry = `extern "C" const mlxg::entry mlxgrad_entry = {"k", 1};`
	for text, want := range map[string]bool{
		"void k(float* x, uint i) { if (i > 3) { return; } barrier(); }":                                true,
		"void k(float* x, uint i) { if (i > 3) { x[i] = 0; } barrier(); }":                              false,
		"float f(float a) { return a; } void k(float* x, F<(1)> y) { barrier(); } void g() { return; }": false,
		"void k(float* x) { /* return; */ barrier(); // return;\n }":                                    false,
		"#define LEAVE(i) if (i > 3) \\\n return\nvoid k(float* x) { LEAVE(x[0]); barrier(); }":         true,
		"void k(float* x) { { x[0] = 1; } if (x[0] > 0) return; barrier(); }":                           true,
		"void other(float* x) { barrier(); }":                                                           true,
	} {
		require.Equal(t, want, leavesEarly(text+"\n"+entry), text)
	}
}
