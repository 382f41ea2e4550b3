package checker

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// An output with elements that no thread writes is a finding with the number of these elements.
func TestUnwrittenOutputs(t *testing.T) {
	for text, want := range map[string]struct{ first, count int }{
		"if (i > 100) y[i] = x[i];":                           {0, 40},
		"if (i < 30) y[i] = x[i];":                            {30, 10},
		"if (i % 4) y[i] = x[i];":                             {0, 10},
		"if (i != 39) y[i] = x[i];":                           {39, 1},
		"if (i != 5) reinterpret_cast<ushort2*>(y)[i].y = 3;": {0, 40},
		"if (i != 5) atomic_store_explicit(reinterpret_cast<atomic_uint*>(y) + i, 3, memory_order_relaxed);": {5, 1},
	} {
		r := runBody(t, text)
		require.Len(t, r.Findings, 1, text)
		f := r.Findings[0]
		require.Equal(t, UnwrittenOutput, f.Kind, text)
		require.Equal(t, 1, f.Slot)
		require.EqualValues(t, 4*want.first, f.Offset, text)
		require.Equal(t, want.count, f.Count, text)
	}
}

// Padding, and outputs with an initial content, need not be written.
func TestUnwrittenPaddingAndInitializedOutputs(t *testing.T) {
	p, err := Build(t.Context(), body("if (i % 4 != 3) y[i] = x[i];"))
	require.NoError(t, err)
	padded, held := launchOf(40), launchOf(40)
	padded.Buffers[1].Padding = 4
	held.Buffers[1].Data = make([]byte, 160)
	for _, l := range []Launch{padded, held} {
		r, err := p.Run(t.Context(), l)
		require.NoError(t, err)
		require.Empty(t, r.Findings)
	}
}
