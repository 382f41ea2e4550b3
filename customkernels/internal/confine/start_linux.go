package confine

import (
	"fmt"
	"os/exec"
	"runtime"

	"golang.org/x/sys/unix"
)

// limit sets the limits of a compiler. Processes inherit limits, and Go cannot set one for a child alone, so a shell
// sets them. The limit of processes counts all processes of the user, so it depends on their present number. Shells
// name it -u or -p.
func (c *Command) limit() {
	processes := uint64(1024)
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) == nil {
		processes += uint64(info.Procs)
	}
	const script = `ulimit -v %d && ulimit -f %d && ulimit -t %d && ulimit -c 0 && ` +
		`{ ulimit -u %[4]d || ulimit -p %[4]d || true; } 2>/dev/null && exec "$0" "$@"`
	c.Args = append([]string{"-c", fmt.Sprintf(script, Memory>>10, FileSize/512, int(Time.Seconds()), processes), c.Path}, c.Args...)
	c.Path = "/bin/sh"
}

// start starts cmd from a thread with the restrictions of c. The thread ends with its goroutine, because the goroutine
// stays locked to it.
func (c *Command) start(cmd *exec.Cmd) error {
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		if unix.Gettid() == unix.Getpid() {
			// The main thread cannot end. While this goroutine holds it, another one runs on another thread.
			started <- c.start(cmd)
			runtime.UnlockOSThread()
			return
		}
		err := c.restrict()
		if err == nil {
			err = cmd.Start()
		}
		started <- err
	}()
	return <-started
}

// restrict restricts this thread, as far as the kernel supports it.
func (c *Command) restrict() error {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("confining %s: no_new_privs: %w", c.Path, err)
	}
	if err := c.restrictFiles(); err != nil {
		return fmt.Errorf("confining %s: Landlock: %w", c.Path, err)
	}
	if err := restrictCalls(); err != nil {
		return fmt.Errorf("confining %s: seccomp: %w", c.Path, err)
	}
	return nil
}

// Containment returns the restrictions of compilers and checked kernels on this machine, and the gaps. gaps is empty if
// there are none.
func Containment() (inForce, gaps string) { return describe(landlockABI(), seccompAvailable()) }
