package main

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/internal/oldlinux"
	"github.com/mlxgrad/mlxgrad/internal/skip"
)

// On a machine without Landlock, or also without seccomp, metalsan works and names the gaps.
func TestOldLinux(t *testing.T) {
	skip.Program(t, skip.GXX)
	program, err := os.Executable()
	require.NoError(t, err)
	metalsan := func(seccomp bool, args ...string) string {
		cmd := exec.Command(program)
		cmd.Args = append([]string{"metalsan"}, args...) // see TestMain
		var out bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &out
		require.NoError(t, oldlinux.Run(cmd, !seccomp), &out)
		return out.String()
	}
	for _, c := range []struct {
		seccomp       bool
		inForce, gaps string
	}{
		{
			true, "limits of time, memory, processes and file size, seccomp",
			"compilers read and write your files, and send signals to your processes",
		},
		{
			false, "limits of time, memory, processes and file size",
			"UDP and Unix sockets, and new processes of a checked kernel; compilers read and write your files, and send signals " +
				"to your processes; checked kernels do so too; TCP",
		},
	} {
		version := metalsan(c.seccomp, "--version")
		require.Contains(t, version, "containment: "+c.inForce)
		require.Contains(t, version, "; not restricted: "+c.gaps+"\n")
		require.NotContains(t, version, "Landlock")
		require.Equal(t, c.seccomp, strings.Contains(version, "seccomp"))
		report := metalsan(c.seccomp, "--json", "-", "../../examples/softmax.metal")
		require.Contains(t, report, `"unrestricted": "`+c.gaps+`"`)
		require.Contains(t, report, "softmax: 3 launches: ok")
	}
}
