//go:build !linux

package confine

import "os/exec"

func (c *Command) limit() {}

func (c *Command) start(cmd *exec.Cmd) error { return cmd.Start() }
