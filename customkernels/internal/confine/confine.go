// Package confine runs compilers and checked kernels with limits of time, memory and file size, and without access to
// other files, processes and the network, as far as the operating system allows.
//
// On Linux, a thread of this process restricts itself with Landlock and seccomp, starts the program, and ends. The
// program and all processes that it starts inherit the restrictions; the other threads of this process do not. No
// launcher is needed, and a test that imports this module starts no copy of itself. See [Containment].
package confine

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// The limits of a compilation. The largest kernels of this project and of MLX take half a minute on an idle core and
// less than 1 GiB. Slow and busy machines need more. All limits except Time hold for each process, on Linux only.
const (
	Time     = 10 * time.Minute
	Memory   = 4 << 30 // bytes of address space
	FileSize = 1 << 30 // bytes of each written file
)

// ErrTime is the cause of a context of [Context] that ended by timeout.
var ErrTime = fmt.Errorf("the compiler did not end within %v: simplify the shader", Time)

// Context returns a context that ends after [Time].
func Context(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, Time, ErrTime)
}

// A Command is a program that runs confined. Goroutines must not share it.
type Command struct {
	Path           string
	Args           []string // without the program's name
	Env            []string
	Dir            string // empty for the folder of this process
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	Files          []*os.File // descriptors 3, 4, … of the program

	// Read holds files and folders that the program reads and executes, and Write holds folders in which it also
	// creates, writes and removes files. Paths that do not exist are ignored.
	Read, Write []string
}

// Compiler returns the command of a compiler with arguments. command holds the compiler's path and the arguments that
// always precede args. The command reads the folders of compilers on this system, and those that command and the
// environment name. It has English messages, and on Linux the limits [Memory], [FileSize] and, as processor time,
// [Time].
func Compiler(command []string, args ...string) *Command {
	c := &Command{
		Path: command[0], Args: append(command[1:len(command):len(command)], args...),
		// ccache would write to its own folder. The cache of this project replaces it.
		Env:  append(os.Environ(), "LC_ALL=C", "CCACHE_DISABLE=1"),
		Read: compilerFiles(command),
	}
	c.limit()
	return c
}

// Kernel returns the command of a compiled kernel with open files, its only access to data. It reads libraries, and its
// environment is empty except for their folders.
func Kernel(path string, files ...*os.File) *Command {
	c := &Command{Path: path, Files: files, Read: append(libraryFiles(), path), Env: []string{}}
	if folders, ok := os.LookupEnv(libraryPath); ok {
		c.Env = append(c.Env, libraryPath+"="+folders)
	}
	return c
}

// Run starts the program and waits until it ends. The end of ctx kills it and all processes that it started. An error
// about its exit is an [*exec.ExitError].
func (c *Command) Run(ctx context.Context) error {
	cmd := exec.CommandContext(ctx, c.Path, c.Args...)
	cmd.Env, cmd.Dir, cmd.ExtraFiles = c.Env, c.Dir, c.Files
	cmd.Stdin, cmd.Stdout, cmd.Stderr = c.Stdin, c.Stdout, c.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	// Compiler drivers have child processes, so the whole process group is killed.
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	if err := c.start(cmd); err != nil {
		return err
	}
	return cmd.Wait()
}

// Output collects the beginning of a program's output. A program that writes without end does not exhaust memory.
type Output struct{ text []byte }

const maxOutput = 1 << 20

// Write implements io.Writer. It never fails.
func (o *Output) Write(p []byte) (int, error) {
	o.text = append(o.text, p[:min(len(p), maxOutput-len(o.text))]...)
	return len(p), nil
}

// String returns the collected output.
func (o *Output) String() string { return string(o.text) }
