package compare

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// The error about an unknown choice lists all choices.
func TestUnknownChoiceOfATrial(t *testing.T) {
	tr, err := parseTrial("float32 x:sparse")
	require.NoError(t, err)
	c := Case{Inputs: []Input{{Name: "x", Shape: []int{2}}}}
	require.EqualError(t, c.fits(*tr), `x:sparse: "sparse" is neither a layout nor a name of values; the layouts are `+
		"[contiguous transposed interleaved strided sliced offset reversed broadcast], and the values "+
		"[either-sign equal far integers normal spike spread zero]")
}
