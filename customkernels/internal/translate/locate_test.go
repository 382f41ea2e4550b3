package translate

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Locate maps lines of a generated text to lines of the file.
func TestLocate(t *testing.T) {
	file, src := parseFile(t, "example.metal")
	lines := strings.Split(src, "\n")
	k, err := file.Kernel("norm")
	require.NoError(t, err)
	text := exampleNorm(t)
	found := map[int]bool{}
	for i, line := range strings.Split(text, "\n") {
		at, ok := k.Locate(text, i+1)
		if !ok {
			require.True(t, strings.HasPrefix(line, "  const ") || strings.HasPrefix(line, "  device ") ||
				strings.HasPrefix(line, "  uint") ||
				strings.HasPrefix(line, "template") || strings.HasPrefix(line, "[[kernel]]") || line == "}" ||
				line == "", line)
			continue
		}
		require.Equal(t, "example.metal", at.File)
		found[at.Line] = true
		if at.Line != k.BodyPos.Line && strings.TrimSpace(line) != "" && line != "}" {
			require.Equal(t, lines[at.Line-1], line)
		}
	}
	for n := k.BodyPos.Line; n <= k.BodyPos.Line+strings.Count(k.Body, "\n"); n++ {
		require.True(t, found[n], "line %d", n)
	}
	require.True(t, found[9], "the header's lines too")
	_, ok := k.Locate("other text", 3)
	require.False(t, ok)
	_, ok = k.Locate(text, 0)
	require.False(t, ok)
}
