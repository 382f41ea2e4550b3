package limited

import (
	"context"
	"io"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Command passes arguments unchanged and limits the memory.
func TestCommand(t *testing.T) {
	output, err := Command(t.Context(), "/bin/echo", "a b", "$HOME", "'").Output()
	require.NoError(t, err)
	require.Equal(t, "a b $HOME '\n", string(output))
	if runtime.GOOS != "linux" {
		return
	}
	output, err = Command(t.Context(), "/bin/sh", "-c", "ulimit -v").Output()
	require.NoError(t, err)
	require.Equal(t, strconv.Itoa(Memory>>10), strings.TrimSpace(string(output)))
}

// Canceling the context also kills the program's child processes: the pipe that they hold open closes.
func TestContextEndsTheGroup(t *testing.T) {
	r, w, err := os.Pipe()
	require.NoError(t, err)
	defer r.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cmd := Command(ctx, "/bin/sh", "-c", "sleep 1000 & echo started; wait")
	cmd.Stdout = w
	require.NoError(t, cmd.Start())
	require.NoError(t, w.Close())
	started := make([]byte, len("started\n"))
	_, err = io.ReadFull(r, started)
	require.NoError(t, err)
	cancel()
	require.Error(t, cmd.Wait())
	require.NoError(t, r.SetReadDeadline(time.Now().Add(time.Minute))) // bounds a hang
	_, err = r.Read(started)
	require.ErrorIs(t, err, io.EOF)
}

func TestContext(t *testing.T) {
	ctx, cancel := Context(t.Context())
	defer cancel()
	deadline, ok := ctx.Deadline()
	require.True(t, ok)
	require.Less(t, time.Until(deadline), Time+time.Second)
}
