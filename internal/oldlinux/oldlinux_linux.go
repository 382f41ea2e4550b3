// Package oldlinux runs programs as on a machine whose Linux lacks Landlock or seccomp. It is for tests.
package oldlinux

import (
	"fmt"
	"os/exec"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Run runs a command without Landlock, and without seccomp if it is set. The command and its child processes find that
// the system calls do not exist. The test's own process is not affected.
func Run(cmd *exec.Cmd, seccomp bool) error {
	started := make(chan error, 1)
	go start(cmd, seccomp, started)
	if err := <-started; err != nil {
		return err
	}
	return cmd.Wait()
}

// start starts a command from a thread that ends with this goroutine, because the goroutine stays locked to it.
func start(cmd *exec.Cmd, seccomp bool, started chan<- error) {
	runtime.LockOSThread()
	if unix.Gettid() == unix.Getpid() {
		// The main thread cannot end. While this goroutine holds it, another one runs on another thread.
		again := make(chan error)
		go start(cmd, seccomp, again)
		started <- <-again
		runtime.UnlockOSThread()
		return
	}
	err := hide(seccomp)
	if err == nil {
		err = cmd.Start()
	}
	started <- err
}

// hide answers this thread's calls of Landlock as a kernel without it, and those of seccomp too.
func hide(seccomp bool) error {
	const number, argument = 0, 16 // offsets of the call's number and of its first argument in the kernel's seccomp_data
	const load, equal, answer = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K,
		unix.BPF_RET | unix.BPF_K
	refuse := func(errno unix.Errno) unix.SockFilter {
		return unix.SockFilter{Code: answer, K: unix.SECCOMP_RET_ERRNO | uint32(errno)}
	}
	var filter []unix.SockFilter
	hidden := []uint32{unix.SYS_LANDLOCK_CREATE_RULESET, unix.SYS_LANDLOCK_ADD_RULE, unix.SYS_LANDLOCK_RESTRICT_SELF}
	if seccomp {
		hidden = append(hidden, unix.SYS_SECCOMP)
		filter = append(filter,
			unix.SockFilter{Code: load, K: number},
			unix.SockFilter{Code: equal, K: unix.SYS_PRCTL, Jf: 3},
			unix.SockFilter{Code: load, K: argument},
			unix.SockFilter{Code: equal, K: unix.PR_SET_SECCOMP, Jf: 1},
			refuse(unix.EINVAL))
	}
	filter = append(filter, unix.SockFilter{Code: load, K: number})
	for _, call := range hidden {
		filter = append(filter, unix.SockFilter{Code: equal, K: call, Jf: 1}, refuse(unix.ENOSYS))
	}
	filter = append(filter, unix.SockFilter{Code: answer, K: unix.SECCOMP_RET_ALLOW})
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("no_new_privs: %w", err)
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	if err := unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&program)), 0, 0); err != nil {
		return fmt.Errorf("seccomp: %w", err)
	}
	return nil
}
