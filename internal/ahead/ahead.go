// Package ahead lists the kernels that a computation needs, so that they can be compiled before it runs.
package ahead

import (
	"context"
	"sync"
	"sync/atomic"
)

// Program is one variant of a kernel.
type Program struct {
	File      string   // the shader file
	Kernel    string   // the function's name
	Arguments []string // template arguments as NAME=VALUE, dtypes and size classes of the inputs
	// Signature differs between the variants of a kernel. It covers Arguments and the dtypes of the outputs.
	Signature string
	// Compile compiles the variant if the current device compiles kernels ahead; otherwise it does nothing.
	// Several goroutines may compile at once.
	Compile func(context.Context) error
}

var (
	mu      sync.Mutex // held by Collect
	current atomic.Pointer[func(Program)]
)

// Collect calls f and returns the program of every launch in it. Nothing is compiled: launches return zeros, so f must
// not depend on their values. Collect affects all goroutines: no other may launch kernels meanwhile.
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

// Current returns the function that receives programs during [Collect], otherwise nil.
func Current() func(Program) {
	if add := current.Load(); add != nil {
		return *add
	}
	return nil
}
