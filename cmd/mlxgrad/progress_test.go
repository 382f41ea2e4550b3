package main

import (
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/compare/report"
	"github.com/mlxgrad/mlxgrad/internal/statusline"
)

func TestProgress(t *testing.T) {
	p := &parityProgress{status: statusline.New(io.Discard), allRows: 1000}
	p.compiled(0, 12)
	require.Equal(t, "0 of 12 kernels compiled, 0 of 1000 rows judged, 0 failed", p.String())
	p.judged([]report.Row{{Pass: true}, {}})
	p.judged([]report.Row{{Pass: true}})
	p.compiled(12, 12)
	require.Equal(t, "12 of 12 kernels compiled, 3 of 1000 rows judged, 1 failed", p.String())

	// On a GPU no kernels are compiled in advance, and the progress does not mention them.
	p = &parityProgress{status: statusline.New(io.Discard), allRows: 3}
	p.judged([]report.Row{{Pass: true}})
	require.Equal(t, "1 of 3 rows judged, 0 failed", p.String())
}
