package gomlx

import (
	"os"
	"testing"

	"github.com/gomlx/gomlx/backends"
	"github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/stretchr/testify/require"
)

func TestFirst(t *testing.T) {
	os.Setenv("GOMLX_BACKEND", "mlx")
	b := backends.MustNew()
	e := graph.MustNewExec(b, func(x *graph.Node) *graph.Node { return graph.Add(x, graph.Sin(x)) })
	out, err := e.Exec([]float32{1, 2, 3})
	require.NoError(t, err)
	t.Log(out[0])
	out, err = e.Exec([]float32{1, 2, 3})
	require.NoError(t, err)
	t.Log(out[0])
}
