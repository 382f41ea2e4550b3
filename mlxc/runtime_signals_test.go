//go:build linux

package mlxc_test

import (
	"syscall"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/internal/skip"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// CUDA's compiler reinstalls Go's signal handlers without SA_ONSTACK. Go would end the process at the next signal. An
// evaluation that takes as long as a compilation repairs them.
func TestSignalsKeepTheirStack(t *testing.T) {
	if mlxc.CurrentBackend() != mlxc.BackendCUDA {
		skip.Missing(t, skip.CUDA, "the current backend is not CUDA")
	}
	const onStack = 0x08000000
	var action struct {
		handler  uintptr
		flags    uint64
		restorer uintptr
		mask     uint64
	}
	call := func(set, get unsafe.Pointer) {
		_, _, e := syscall.RawSyscall6(syscall.SYS_RT_SIGACTION, uintptr(syscall.SIGTERM), uintptr(set), uintptr(get),
			8, 0, 0)
		require.Zero(t, e)
	}
	call(nil, unsafe.Pointer(&action))
	action.flags &^= onStack
	call(unsafe.Pointer(&action), nil)
	x := mlxc.Ones(mlxc.Float32, 8192, 8192)
	for range 4 { // milliseconds
		x = x.MatMul(x)
	}
	require.NoError(t, mlxc.Eval(x))
	call(nil, unsafe.Pointer(&action))
	require.NotZero(t, action.flags&onStack)
}
