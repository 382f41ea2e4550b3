package mlxc

// #include "mlxg.h"
import "C"

// IsTraced reports whether a is, or depends on, an argument of a function under a transform. Inside a function whose
// gradient is being taken, it reports whether a gradient may be requested for a. Arrays that the function captures are
// not traced, and outside of transforms no array is. Under Compile, every argument is traced.
//
// It is for packages that build operations.
func (a *Array) IsTraced() bool {
	ctx, err := a.acquire()
	if err != nil {
		return false
	}
	defer a.release()
	return bool(C.mlxg_traced(handleWord(ctx)))
}
