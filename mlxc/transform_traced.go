package mlxc

// #include "mlxg.h"
import "C"

// IsTraced reports whether a is an argument of a function under a transform, or depends on
// one: inside a function whose gradient is being taken, whether one may be asked of a.
// Arrays that the function captures are not traced, nor is anything outside of
// transforms. Under Compile, every argument is.
func (a *Array) IsTraced() bool {
	ctx, err := a.acquire()
	if err != nil {
		return false
	}
	defer a.release()
	return bool(C.mlxg_traced(ctx))
}
