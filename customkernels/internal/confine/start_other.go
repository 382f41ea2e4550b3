//go:build !linux

package confine

import "os/exec"

func (c *Command) limit() {}

func (c *Command) start(cmd *exec.Cmd) error { return cmd.Start() }

// Containment returns the restrictions of compilers on this machine, and the gaps.
func Containment() (inForce, gaps string) {
	return "limit of time", "compilers run with your rights; Landlock and seccomp are parts of Linux"
}
