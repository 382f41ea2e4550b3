//go:build !linux

package confine

import "os/exec"

func (c *Command) limit() {}

func (c *Command) start(cmd *exec.Cmd) error { return cmd.Start() }

// Containment says what restricts compilers on this machine. open says what nothing restricts.
func Containment() (inForce, open string) {
	return "limit of time", "compilers run with your rights; Landlock and seccomp are parts of Linux"
}
