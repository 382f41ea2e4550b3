// Package ahead lists the kernels that a computation needs, so that they can be compiled before it runs.
package ahead

import (
	"context"
	"sync"
	"sync/atomic"
)

// A Program is one variant of a kernel. A launch selects it by template arguments, dtypes and sizes.
type Program struct {
	File      string   // the shader file
	Kernel    string   // the function's name
	Arguments []string // template arguments as NAME=VALUE, dtypes and size classes of the inputs
	// Signature identifies the variant among all variants of the kernel. It covers Arguments and the outputs' dtypes.
	Signature string
	// Compile compiles the variant for the current device. On Metal it does nothing, because MLX compiles kernels at
	// their first launch. Several goroutines may call it at once.
	Compile func(context.Context) error
}

var (
	mu      sync.Mutex // held by Collect
	current atomic.Pointer[func(Program)]
)

// Collect calls f and returns the program of every launch in f. It compiles nothing: launches return zeros, so f must
// not depend on their values. Collect affects all goroutines: no other goroutine may launch kernels meanwhile. f must
// not call Collect.
func Collect(f func()) []Program {
	mu.Lock()
	defer mu.Unlock()
	var list []Program
	add := func(p Program) { list = append(list, p) }
	current.Store(&add)
	defer current.Store(nil)
	f()
	return list
}

// Current returns the function that receives the programs of launches during [Collect]. At other times it returns nil.
func Current() func(Program) {
	if add := current.Load(); add != nil {
		return *add
	}
	return nil
}
