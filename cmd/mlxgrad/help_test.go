package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/internal/cli/manual"
)

func TestEveryHelpHasAnExample(t *testing.T) { manual.RequireExamples(t, newRoot(true)) }

func TestManPagesAreCurrent(t *testing.T) {
	folder := filepath.Join("..", "..", "docs", "man")
	manual.RequireCurrent(t, newRoot(true), folder, *update)
	pages, err := filepath.Glob(filepath.Join(folder, "mlxgrad*.1"))
	require.NoError(t, err)
	require.Len(t, pages, 1+len(newRoot(true).Commands()), "a page of a verb that is gone")
}

// Shells complete verbs, the values of flags and the files of a verb.
func TestCompletion(t *testing.T) {
	complete := func(words ...string) string {
		var out bytes.Buffer
		require.Equal(t, 0, run(append([]string{"__complete"}, words...), &out, &bytes.Buffer{}))
		return out.String()
	}
	require.Contains(t, complete("p"), "parity\tCompare our gradients")
	require.Equal(t, "softmax\n:4\n", complete("parity", "--op", "soft"))
	require.Equal(t, "softmax,embedding\nsoftmax,embedding-sparse\n:4\n", complete("parity", "--op", "softmax,emb"))
	require.Contains(t, complete("report", "--format", ""), "text\ncsv\njunit\nmarkdown\nhtml\nbenchstat\n:4\n")
	require.Contains(t, complete("report", ""), "json\n:8\n")
	require.Contains(t, complete("sanitize", ""), "metal\npy\n:8\n")
	for shell, line := range map[string]string{
		"bash": "complete -o default -F __start_mlxgrad mlxgrad\n",
		"zsh":  "#compdef mlxgrad\n",
		"fish": "complete -c mlxgrad ",
	} {
		var out bytes.Buffer
		require.Equal(t, 0, run([]string{"completion", shell}, &out, os.Stderr))
		require.True(t, strings.Contains(out.String(), line), shell)
	}
}
