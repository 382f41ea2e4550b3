package mlxc

/*
#cgo linux LDFLAGS: -ldl -lpthread

// The hot calls that get the address of Go memory, which none keeps: with both words, and
// only with both, cgo leaves it on the stack. Calls that get numbers only have nothing to
// gain from them: nocallback costs some nanoseconds.
#cgo noescape mlxg_array_new
#cgo nocallback mlxg_array_new
#cgo noescape mlxg_array_free
#cgo nocallback mlxg_array_free
#cgo noescape mlxg_return
#cgo nocallback mlxg_return
#cgo noescape mlxg_kernel_apply
#cgo nocallback mlxg_kernel_apply
#cgo noescape mlxg_take_released
#cgo nocallback mlxg_take_released

#include "mlxg.h"
*/
import "C"
