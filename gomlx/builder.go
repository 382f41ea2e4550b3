package gomlx

import (
	"errors"
	"fmt"

	"github.com/gomlx/gomlx/backends"
	"github.com/gomlx/gomlx/pkg/core/shapes"
)

// builder implements backends.Builder. Like every builder of GoMLX it serves one goroutine.
type builder struct {
	backend   *backend
	name      string
	main      *function
	functions []*function // main, named functions and closures
	compiled  bool
}

var _ backends.Builder = (*builder)(nil)

func (b *builder) Name() string            { return b.name }
func (b *builder) Main() backends.Function { return b.main }

func (b *builder) newFunction(name string, parent *function) *function {
	f := &function{builder: b, name: name, parent: parent}
	b.functions = append(b.functions, f)
	return f
}

// NewFunction returns a function that Call can call.
func (b *builder) NewFunction(name string) (backends.Function, error) {
	if name == "" {
		return nil, errors.New("gomlx: NewFunction: the name is empty")
	}
	if b.compiled {
		return nil, errCompiled
	}
	for _, f := range b.functions {
		if f.name == name {
			return nil, fmt.Errorf("gomlx: NewFunction: there is a function %q already", name)
		}
	}
	return b.newFunction(name, nil), nil
}

var errCompiled = errors.New("gomlx: the builder was compiled; it takes no further operations")

// OpShape returns the shape of a value.
func (b *builder) OpShape(op backends.Value) (shapes.Shape, error) {
	v, ok := op.(*value)
	if !ok || v == nil || v.fn.builder != b {
		return shapes.Invalid(), fmt.Errorf("gomlx: OpShape: the value is a %T; it must be a value of this builder", op)
	}
	return v.shape, nil
}

// DistributedSPMD returns backends.ErrNotImplemented for more than one device.
func (b *builder) DistributedSPMD(devices int) error {
	if devices != 1 {
		return notImplemented("DistributedSPMD on %d devices: the backend has one", devices)
	}
	return nil
}

// DistributedAutoSharding returns backends.ErrNotImplemented.
func (b *builder) DistributedAutoSharding(...backends.Mesh) error {
	return notImplemented("DistributedAutoSharding: the backend has one device")
}

// DeviceAssignment accepts the backend's only device.
func (b *builder) DeviceAssignment(devices ...backends.DeviceNum) error {
	if len(devices) != 1 || devices[0] != 0 {
		return fmt.Errorf("gomlx: DeviceAssignment: the device numbers are %v; the backend has only device 0", devices)
	}
	return nil
}

// Compile returns the executable of the main function. MLX compiles at the first execution.
func (b *builder) Compile() (backends.Executable, error) {
	if b.compiled {
		return nil, errCompiled
	}
	if !b.main.returned {
		return nil, errors.New("gomlx: Compile: the main function has no Return")
	}
	b.compiled = true
	return &executable{backend: b.backend, main: b.main, functions: b.functions}, nil
}
