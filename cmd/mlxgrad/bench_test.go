package main

import (
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/compare/report"
	"github.com/mlxgrad/mlxgrad/internal/statusline"
)

// The file holds each row as soon as it is measured, so that the end of the process does not lose it.
func TestBenchKeepsMeasuredRows(t *testing.T) {
	c := benchCommand{JSON: filepath.Join(t.TempDir(), "b.json")}
	r := &report.Bench{Incomplete: true, Rows: []report.BenchRow{{Op: "transpose2d", Case: "256x1024", Error: "no"}}}
	c.measured(statusline.New(io.Discard), r, 2)
	text, err := os.ReadFile(c.JSON)
	require.NoError(t, err)
	require.Contains(t, string(text), `"case": "256x1024"`)
	require.Contains(t, string(text), `"incomplete": true`)
}
