package confine

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDescribe(t *testing.T) {
	const limits, calls = "limits of time, memory, processes and file size", ", seccomp (network, other processes; no new processes " +
		"and files in a checked kernel)"
	for _, c := range []struct {
		abi           int
		seccomp       bool
		inForce, open string
	}{
		{7, true, limits + calls + ", Landlock ABI 7 (files, TCP, signals)", ""},
		{3, true, limits + calls + ", Landlock ABI 3 (files)", "compilers send signals to your processes"},
		{6, false, limits + ", Landlock ABI 6 (files, TCP, signals)", "UDP and Unix sockets, and new processes of a checked kernel"},
		{0, true, limits + calls, "compilers read and write your files, and send signals to your processes"},
		{0, false, limits, "UDP and Unix sockets, and new processes of a checked kernel; compilers read and write your files, and send " +
			"signals to your processes; checked kernels do so too; TCP"},
	} {
		inForce, open := describe(c.abi, c.seccomp)
		require.Equal(t, c.inForce, inForce)
		require.Equal(t, c.open, open)
	}
	inForce, _ := Containment()
	require.Contains(t, inForce, "time")
}
