package main

import (
	"bytes"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/internal/oldlinux"
)

// On a machine without Landlock and seccomp, the doctor names the gaps.
func TestDoctorOnOldLinux(t *testing.T) {
	program, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(program)
	cmd.Args = []string{"mlxgrad", "doctor"} // see TestMain
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	require.NoError(t, oldlinux.Run(cmd, true), &out)
	require.Regexp(t, `containment +limits of time, memory, processes and file size\n`, out.String())
	require.Contains(t, out.String(), "not restricted: UDP and Unix sockets")
	require.Contains(t, out.String(), "use Linux 6.12 or later with Landlock and seccomp")
}
