package checker

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Writes to inputs are found, whatever their size. Reads are no findings.
func TestWritesToInputs(t *testing.T) {
	const input = "uint* w = const_cast<uint*>(x);\n"
	for text, want := range map[string]bool{
		input + "w[i] = 1;":                                                         true,
		input + "if (i == 39) w[i] = 1;":                                            true,
		input + "reinterpret_cast<uchar*>(w)[i] = 1;":                               true,
		input + "if (i == 1) *reinterpret_cast<uint4*>(w) = uint4(1);":              true,
		"atomic_fetch_add_explicit((atomic_uint*)x, 1, memory_order_relaxed);":      true,
		"y[i] = atomic_load_explicit((const atomic_uint*)x, memory_order_relaxed);": false,
		"y[i] = x[i];": false,
	} {
		r := runBody(t, text+"\ny[i] = 1;")
		require.Equal(t, want, len(r.Findings) > 0, text)
		for _, f := range r.Findings {
			require.Equal(t, WriteToInput, f.Kind, text)
		}
	}
}
