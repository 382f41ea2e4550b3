package checker

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A vector or small structure of which a thread reads a part is no unread element. An element that no thread reads is.
func TestUnreadPartsOfElements(t *testing.T) {
	const (
		vectors    = "auto& t = mlxg::threadgroup_variable<uint4[32], 0>();\nt[i % 32] = uint4(i);\n"
		structures = "struct pair { uint key, value; };\nauto& t = mlxg::threadgroup_variable<pair[32], 0>();\n" +
			"t[i % 32].key = i;\nt[i % 32].value = i;\n"
		barrier = "threadgroup_barrier(mem_flags::mem_threadgroup);\n"
	)
	for text, unread := range map[string]bool{
		vectors + barrier + "y[i] = t[31 - i % 32].x;":               false,
		vectors + barrier + "y[i] = i % 32 < 8 ? t[i % 32].x : 0;":   true,
		structures + barrier + "y[i] = t[31 - i % 32].key;":          false,
		structures + barrier + "y[i] = i % 32 < 8 ? t[i].value : 0;": true,
	} {
		r := runBodyOn(t, text, 32)
		if !unread {
			require.Empty(t, r.Findings, text)
			continue
		}
		require.NotEmpty(t, r.Findings, text)
		for _, f := range r.Findings {
			require.Equal(t, NeverRead, f.Kind, text)
		}
	}
}
