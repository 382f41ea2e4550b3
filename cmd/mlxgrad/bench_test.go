package main

import (
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

type onWrite func()

func (f onWrite) Write(p []byte) (int, error) {
	f()
	return len(p), nil
}

// A row is in the files before its line is printed, so that the end of the process does not lose it.
func TestBenchKeepsWhatItMeasured(t *testing.T) {
	csv, json := filepath.Join(t.TempDir(), "b.csv"), filepath.Join(t.TempDir(), "b.json")
	lines := 0
	code := run([]string{
		"bench", "--op", "transpose2d", "--dtype", "float32", "--shape", "^256x1024$", "--repeat", "1",
		"--csv", csv, "--json", json,
	}, io.Discard, onWrite(func() {
		lines++
		text, err := os.ReadFile(csv)
		require.NoError(t, err)
		require.Contains(t, string(text), "transpose2d,256x1024,float32")
		text, err = os.ReadFile(json)
		require.NoError(t, err)
		require.Contains(t, string(text), `"incomplete": true`)
	}))
	require.Equal(t, 0, code)
	require.Equal(t, 1, lines)
	text, err := os.ReadFile(json)
	require.NoError(t, err)
	require.Contains(t, string(text), `"incomplete": false`)
}
