package confine

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// shell returns the command of a shell script, confined as a compiler, and its output.
func shell(script string, args ...string) (*Command, *Output) {
	c := Compiler([]string{"/bin/sh"}, append([]string{"-c", script}, args...)...)
	out := new(Output)
	c.Stdout, c.Stderr = out, out
	return c, out
}

func TestCompiler(t *testing.T) {
	c, out := shell(`echo "$0" "$1" "$LC_ALL"`, "a b", "$HOME'")
	require.NoError(t, c.Run(t.Context()))
	require.Equal(t, "a b $HOME' C\n", out.String())
	if runtime.GOOS != "linux" {
		return
	}
	c, out = shell("ulimit -v; ulimit -t; ulimit -c")
	require.NoError(t, c.Run(t.Context()))
	require.Equal(t, strconv.Itoa(Memory>>10)+"\n600\n0\n", out.String())
	c, _ = shell("exit 3")
	err := c.Run(t.Context())
	var exit *exec.ExitError
	require.ErrorAs(t, err, &exit)
	require.Equal(t, 3, exit.ExitCode())
}

// The restrictions hold for the program alone: after it, threads of this process read and write files as before.
func TestThisProcessStaysFree(t *testing.T) {
	for range 20 {
		c, _ := shell("true")
		require.NoError(t, c.Run(t.Context()))
	}
	done := make(chan error)
	for range 50 { // more goroutines than threads
		go func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			_, err := os.ReadFile("/etc/passwd")
			status, _ := os.ReadFile("/proc/thread-self/status")
			if strings.Contains(string(status), "NoNewPrivs:\t1") {
				err = errors.New("a restricted thread runs goroutines")
			}
			done <- err
		}()
	}
	for range 50 {
		require.NoError(t, <-done)
	}
	require.NoError(t, os.WriteFile(filepath.Join(t.TempDir(), "file"), nil, 0o600))
}

// Canceling the context also kills the program's child processes: the pipe that they hold open closes.
func TestContextEndsTheGroup(t *testing.T) {
	r, w, err := os.Pipe()
	require.NoError(t, err)
	defer r.Close()
	ctx, cancel := context.WithCancel(t.Context())
	c, _ := shell("sleep 1000 & echo started; wait")
	c.Stdout = w
	ended := make(chan error)
	go func() { ended <- c.Run(ctx) }()
	started := make([]byte, len("started\n"))
	_, err = io.ReadFull(r, started)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	cancel()
	require.Error(t, <-ended)
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

func TestOutputIsBounded(t *testing.T) {
	var out Output
	for range 3 {
		n, err := out.Write(make([]byte, maxOutput/2+1))
		require.NoError(t, err)
		require.Equal(t, maxOutput/2+1, n)
	}
	require.Len(t, out.String(), maxOutput)
}
