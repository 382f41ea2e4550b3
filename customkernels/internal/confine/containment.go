package confine

import (
	"fmt"
	"strings"
)

// describe returns the restrictions with a version of Landlock, 0 for none, and with or without seccomp, and the gaps.
func describe(abi int, seccomp bool) (inForce, gaps string) {
	in := []string{"limits of time, memory, processes and file size"}
	var missing []string
	if seccomp {
		in = append(in, "seccomp (network, other processes; no new processes and files in a checked kernel)")
	} else {
		missing = append(missing, "UDP and Unix sockets, and new processes of a checked kernel")
	}
	var reach []string
	if abi == 0 {
		missing = append(missing, "compilers read and write your files, and send signals to your processes")
		if !seccomp {
			missing = append(missing, "checked kernels do so too", "TCP")
		}
	} else {
		reach = append(reach, "files")
		if abi < 3 {
			missing = append(missing, "files can be truncated")
		}
		if abi >= 4 {
			reach = append(reach, "TCP")
		} else if !seccomp {
			missing = append(missing, "TCP")
		}
		if abi >= 6 {
			reach = append(reach, "signals")
		} else {
			missing = append(missing, "compilers send signals to your processes")
		}
		in = append(in, fmt.Sprintf("Landlock ABI %d (%s)", abi, strings.Join(reach, ", ")))
	}
	return strings.Join(in, ", "), strings.Join(missing, "; ")
}
