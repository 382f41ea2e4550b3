package statusline

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestLine(t *testing.T) {
	var screen bytes.Buffer
	l := &Line{w: &screen}
	l.show(time.Second)
	require.Empty(t, screen.String(), "there is no text")
	l.Set("%d of %d", 1, 20)
	l.show(3 * time.Second)
	l.Set("two")
	l.show(65 * time.Second)
	l.Interrupt(func() { screen.WriteString("output\n") })
	l.Interrupt(func() { screen.WriteString("more\n") })
	l.show(66 * time.Second)
	l.End()
	l.show(67 * time.Second)
	l.End()
	blank := strings.Repeat(" ", len("[ 65 s] two"))
	require.Equal(t, "\r[  3 s] 1 of 20\r[ 65 s] two    \r"+blank+"\routput\nmore\n\r[ 66 s] two\r"+blank+"\r", screen.String())

	screen.Reset()
	l.Set("%s", strings.Repeat("µ", 200))
	l.show(time.Second)
	require.Equal(t, "\r[  1 s] "+strings.Repeat("µ", maxWidth-8), screen.String())
}

// Pipes and files get no progress.
func TestLineOfAFile(t *testing.T) {
	var log bytes.Buffer
	file, err := os.Create(t.TempDir() + "/log")
	require.NoError(t, err)
	defer file.Close()
	require.Nil(t, New(&log).stop)
	require.Nil(t, New(file).stop)
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	require.NoError(t, err)
	defer null.Close()
	require.Nil(t, New(null).stop)
}
