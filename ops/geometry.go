package ops

import "github.com/mlxgrad/mlxgrad/mlxc"

// device is a class of devices that wants the same launch geometry.
type device int

const (
	host device = iota
	gpu
)

func (d device) String() string {
	if d == host {
		return "host"
	}
	return "gpu"
}

func currentDevice() device {
	if mlxc.CurrentBackend() == mlxc.BackendCPU {
		return host
	}
	return gpu
}

// geometry is how a row-wise kernel is launched: threads in a group, elements that
// a thread takes at a time, and the largest number of groups.
type geometry struct {
	threads, chunk, groups int
}

// rowGeometry is for kernels whose groups each walk over rows.
//
// host: a group is one thread, so that nothing has to meet and a row streams
// through one core; 16 floats at a time are a vector register or two. 64 groups
// give each of a few cores several turns to even out.
//
// gpu: 4 elements a thread make a 16-byte load in float32. A group takes as many
// threads as the row fills, up to 1024, in whole simdgroups. The number of groups
// only has to be enough to fill the largest GPU.
func rowGeometry(d device, width int) geometry {
	if d == host {
		return geometry{threads: 1, chunk: 16, groups: 64}
	}
	return geometry{threads: wholeSimdgroups(width, 4), chunk: 4, groups: 4096}
}

// columnGeometry is for kernels that sum over rows: lanes own columns, and the
// simdgroups of a group share the rows.
//
// host: one thread for 32 columns, two cache lines of float32, walks down all
// rows.
//
// gpu: 8 simdgroups of 32 lanes, one column a lane, so that even narrow widths
// make several groups.
func columnGeometry(d device) geometry {
	if d == host {
		return geometry{threads: 1, chunk: 32}
	}
	return geometry{threads: 256, chunk: 1}
}

// wholeSimdgroups is the number of threads for a row of n elements, chunk at a
// time: a multiple of 32 up to 1024.
func wholeSimdgroups(n, chunk int) int {
	threads := (n + chunk - 1) / chunk
	return min(max((threads+31)/32*32, 32), 1024)
}
