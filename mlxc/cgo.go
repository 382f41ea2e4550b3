package mlxc

/*
#cgo linux LDFLAGS: -ldl -lpthread

// Frequent calls that take the address of Go memory. No such function keeps the address or
// calls Go. With both noescape and nocallback, cgo leaves the memory on the stack; with only
// one of the two it does not. Calls that take only numbers do not gain from them, and
// nocallback costs a few nanoseconds.
#cgo noescape mlxg_array_new
#cgo nocallback mlxg_array_new
#cgo noescape mlxg_array_free
#cgo nocallback mlxg_array_free
#cgo noescape mlxg_return
#cgo nocallback mlxg_return
#cgo noescape mlxg_find_id
#cgo nocallback mlxg_find_id
#cgo noescape mlxg_recipe_apply
#cgo nocallback mlxg_recipe_apply
#cgo noescape mlxg_kernel_apply
#cgo nocallback mlxg_kernel_apply
#cgo noescape mlxg_take_released
#cgo nocallback mlxg_take_released

#include "mlxg.h"
*/
import "C"
