package ranks

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"github.com/mlxgrad/mlxgrad/mlxc/distributed"
)

// Launch describes the processes of a program.
type Launch struct {
	Backend distributed.Backend // Ring or NCCL
	Hosts   Hosts
	GPUs    []string // for NCCL, this machine's CUDA devices, as in CUDA_VISIBLE_DEVICES
	Command []string
	Grace   time.Duration // see Run
	Out     io.Writer     // gets the lines of standard output and standard error, with the rank as prefix
	Err     io.Writer
}

// Run starts the ranks of this machine and waits for them. If a rank fails, the others have the time Grace to end by
// themselves. Then they get SIGTERM, and after the same time SIGKILL. The first of the signals is passed on to the ranks;
// they get SIGKILL at the second one, or after Grace. Signals go to the whole process group of each rank.
//
// The error names each rank that failed, and is [ErrSignal] after a signal.
func (l Launch) Run(signals <-chan os.Signal) error {
	local, err := l.Hosts.onThisMachine()
	if err != nil {
		return err
	}
	if len(local) == 0 {
		return errors.New("no rank of the hosts file has an address of this machine; run the command on each machine of the file")
	}
	gpus, err := l.assign(local)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "mlxgrad-launch-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	environments, err := Environments(dir, l.Backend, l.Hosts, gpus)
	if err != nil {
		return err
	}
	var all processes
	var output sync.Mutex // of both writers, which may be the same
	for _, rank := range local {
		c := exec.Command(l.Command[0], l.Command[1:]...)
		c.Env = append(inherited(), environments[rank]...)
		c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // a terminal's signals reach the ranks through Run only
		out, errs := newPrefixed(rank, l.Out, &output), newPrefixed(rank, l.Err, &output)
		c.Stdout, c.Stderr = out, errs
		c.WaitDelay = max(l.Grace, time.Millisecond) // a grandchild may hold the pipes; 0 would wait for it
		if err := c.Start(); err != nil {
			all.signal(syscall.SIGKILL)
			_ = all.wait(nil, 0)
			return fmt.Errorf("starting rank %d: %w", rank, err)
		}
		all = append(all, &process{rank: rank, Cmd: c, flush: func() { out.flush(); errs.flush() }})
	}
	return all.wait(signals, l.Grace)
}

// assign returns the GPU of each local rank.
func (l Launch) assign(local []int) (map[int]string, error) {
	if l.Backend != distributed.NCCL {
		return nil, nil
	}
	if len(local) > len(l.GPUs) {
		return nil, fmt.Errorf("%d ranks on this machine need a GPU each; it has %d", len(local), len(l.GPUs))
	}
	gpus := map[int]string{}
	for i, rank := range local {
		gpus[rank] = l.GPUs[i]
	}
	return gpus, nil
}

// ErrSignal is the error of a launch that a signal ended.
var ErrSignal = errors.New("ended by a signal")

type process struct {
	*exec.Cmd
	rank  int
	flush func()
	ended bool
}

type processes []*process

// signal sends a signal to the process groups of the ranks that run.
func (all processes) signal(s syscall.Signal) {
	for _, p := range all {
		if !p.ended {
			_ = syscall.Kill(-p.Process.Pid, s)
		}
	}
}

// wait waits for all ranks, and ends them as Run says.
func (all processes) wait(signals <-chan os.Signal, grace time.Duration) (err error) {
	type exit struct {
		*process
		err error
	}
	exits := make(chan exit)
	for _, p := range all {
		go func() {
			err := p.Wait()
			if errors.Is(err, exec.ErrWaitDelay) {
				err = nil // the rank succeeded, and a process that it left behind holds the pipes
			}
			exits <- exit{p, err}
		}()
	}
	var timer <-chan time.Time
	next := syscall.SIGTERM // at the timer
	for running := len(all); running > 0; {
		select {
		case e := <-exits:
			running--
			e.ended = true
			e.flush()
			if e.err == nil {
				continue
			}
			err = errors.Join(err, fmt.Errorf("rank %d: %w", e.rank, e.err))
			if timer == nil {
				timer = time.After(grace)
			}
		case <-timer:
			all.signal(next)
			next, timer = syscall.SIGKILL, time.After(grace)
		case s := <-signals:
			if passed, ok := s.(syscall.Signal); ok && !errors.Is(err, ErrSignal) {
				all.signal(passed)
				err = errors.Join(ErrSignal, err)
				next, timer = syscall.SIGKILL, time.After(grace)
			} else {
				all.signal(syscall.SIGKILL)
			}
		}
	}
	return err
}
