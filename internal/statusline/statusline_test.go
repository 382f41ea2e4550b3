package statusline

import (
	"bytes"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestLine(t *testing.T) {
	write := func(l *Line) {
		l.Write("a long text")
		l.Write("short")
		l.End()
		l.End()
	}
	var log, screen bytes.Buffer
	l := New(&log)
	require.False(t, l.Terminal())
	write(l)
	require.Equal(t, "a long text\nshort\n", log.String())

	write(&Line{w: &screen, terminal: true})
	require.Equal(t, "a long text\rshort      \r     \r", screen.String())

	file, err := os.Create(t.TempDir() + "/log")
	require.NoError(t, err)
	defer file.Close()
	require.False(t, New(file).Terminal())
}
