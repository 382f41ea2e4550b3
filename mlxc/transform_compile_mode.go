package mlxc

// #include "mlxg.h"
import "C"

import (
	"fmt"
	"runtime"
)

// CompileMode says how much of its work Compile does.
type CompileMode int

// The modes of MLX. CompileDisabled runs the original function at every call; the
// environment variable MLX_DISABLE_COMPILE makes it the mode at the start.
const (
	CompileDisabled   CompileMode = C.MLXG_COMPILE_DISABLED
	CompileNoSimplify CompileMode = C.MLXG_COMPILE_NO_SIMPLIFY // fuses only
	CompileNoFuse     CompileMode = C.MLXG_COMPILE_NO_FUSE     // simplifies only
	CompileEnabled    CompileMode = C.MLXG_COMPILE_ENABLED
)

// SetCompileMode sets the mode of the process and returns the one before. It holds for
// calls of compiled functions from then on: one that was traced in another mode is
// traced again.
func SetCompileMode(mode CompileMode) (previous CompileMode, err error) {
	const op = "SetCompileMode"
	if err := Check(); err != nil {
		return 0, opError(op, err)
	}
	if mode < CompileDisabled || mode > CompileEnabled {
		return 0, opError(op, fmt.Errorf("there is no mode %d", int(mode)))
	}
	return CompileMode(C.mlxg_compile_set_mode(C.int(mode))), nil
}

// ClearCompileCache forgets what was compiled, of all functions. Their next calls trace
// them again.
func ClearCompileCache() {
	if Check() != nil {
		return
	}
	runtime.LockOSThread()
	inside := insideCallback()
	runtime.UnlockOSThread()
	forget := func() { compiler.do(nil, func() { C.mlxg_compile_clear() }) }
	if inside {
		go forget() // the compiler needs the lock that this goroutine holds
	} else {
		forget()
	}
}
