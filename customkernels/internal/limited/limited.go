// Package limited runs compilers with limits of time and memory. A few lines of untrusted C++ can occupy a compiler
// forever or exhaust memory.
package limited

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"syscall"
	"time"
)

// The limits of one compilation. The largest kernels of this project and of MLX take half a minute on an idle core and
// less than 1 GiB. Slow and busy machines need more.
const (
	Time   = 10 * time.Minute
	Memory = 4 << 30 // bytes of address space of each process; Linux only
)

// ErrTime is the cause of a context of [Context] that ended by timeout.
var ErrTime = fmt.Errorf("the compiler did not end within %v: simplify the shader", Time)

// Context returns a context that ends after [Time].
func Context(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, Time, ErrTime)
}

// Command returns a command that runs a program with English messages, at most [Memory], and a process group of its
// own. The end of the context kills the whole group, because compiler drivers have child processes.
func Command(ctx context.Context, path string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, path, args...)
	if runtime.GOOS == "linux" {
		// Processes inherit limits, and Go cannot set one for a child alone.
		script := "ulimit -v " + strconv.Itoa(Memory>>10) + ` && exec "$0" "$@"`
		cmd = exec.CommandContext(ctx, "/bin/sh", append([]string{"-c", script, path}, args...)...)
	}
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	return cmd
}
