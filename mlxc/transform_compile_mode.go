package mlxc

// #include "mlxg.h"
import "C"

import (
	"fmt"
	"runtime"
)

// CompileMode selects the steps of Compile.
type CompileMode int

// The modes of MLX. CompileDisabled runs the original function at every call; it is the initial mode if the
// environment variable MLX_DISABLE_COMPILE is set.
const (
	CompileDisabled   CompileMode = C.MLXG_COMPILE_DISABLED
	CompileNoSimplify CompileMode = C.MLXG_COMPILE_NO_SIMPLIFY // fuses only
	CompileNoFuse     CompileMode = C.MLXG_COMPILE_NO_FUSE     // simplifies only
	CompileEnabled    CompileMode = C.MLXG_COMPILE_ENABLED
)

// SetCompileMode sets the mode of the process and returns the previous one. It applies to later calls of compiled
// functions: a function traced in another mode is traced again.
func SetCompileMode(mode CompileMode) (previous CompileMode, err error) {
	const op = "SetCompileMode"
	if err := Check(); err != nil {
		return 0, opError(op, err)
	}
	if mode < CompileDisabled || mode > CompileEnabled {
		return 0, opError(op, fmt.Errorf("the compile mode is %d: it must be one of CompileDisabled to CompileEnabled",
			int(mode)))
	}
	return CompileMode(C.mlxg_compile_set_mode(C.int(mode))), nil
}

// ClearCompileCache drops the traces of all compiled functions. Their next calls trace them again.
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
