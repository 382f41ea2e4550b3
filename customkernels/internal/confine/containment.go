package confine

import (
	"fmt"
	"strings"
)

// describe says what restricts programs with a version of Landlock, 0 for none, and with or without seccomp.
func describe(abi int, seccomp bool) (inForce, open string) {
	in := []string{"limits of time, memory, processes and file size"}
	var gaps []string
	if seccomp {
		in = append(in, "seccomp (network, other processes; no new processes and files in a checked kernel)")
	} else {
		gaps = append(gaps, "UDP and Unix sockets, and new processes of a checked kernel")
	}
	var reach []string
	switch {
	case abi == 0:
		gaps = append(gaps, "compilers read and write your files, and send signals to your processes")
		if !seccomp {
			gaps = append(gaps, "checked kernels do so too", "TCP")
		}
	default:
		reach = append(reach, "files")
		if abi < 3 {
			gaps = append(gaps, "files can be truncated")
		}
		if abi >= 4 {
			reach = append(reach, "TCP")
		} else if !seccomp {
			gaps = append(gaps, "TCP")
		}
		if abi >= 6 {
			reach = append(reach, "signals")
		} else {
			gaps = append(gaps, "compilers send signals to your processes")
		}
		in = append(in, fmt.Sprintf("Landlock ABI %d (%s)", abi, strings.Join(reach, ", ")))
	}
	return strings.Join(in, ", "), strings.Join(gaps, "; ")
}
