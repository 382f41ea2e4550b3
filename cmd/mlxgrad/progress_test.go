package main

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/compare/report"
)

func TestProgress(t *testing.T) {
	var log bytes.Buffer
	p := newParityProgress(&log, 1000)
	p.compiled(0, 12)
	for range 2 {
		p.last = p.last.Add(-2 * logInterval)
		p.judged([]report.Row{{Pass: true}, {}})
		p.judged([]report.Row{{Pass: true}}) // within the interval
	}
	p.end()
	first, second := "0 of 12 kernels compiled, 0 of 1000 rows judged, 0 failed", "0 of 12 kernels compiled, 2 of 1000 rows judged, 1 failed"
	third := "0 of 12 kernels compiled, 5 of 1000 rows judged, 2 failed"
	require.Equal(t, first+"\n"+second+"\n"+third+"\n", log.String())

	// On a GPU no kernels are compiled in advance, and the progress does not mention them.
	log.Reset()
	newParityProgress(&log, 3).judged([]report.Row{{Pass: true}})
	newParityProgress(&log, 0).judged(nil)
	require.Equal(t, "1 of 3 rows judged, 0 failed\n", log.String())
}
