package gomlx

import (
	"fmt"
	"sync/atomic"

	"github.com/gomlx/gomlx/backends"
	"github.com/gomlx/gomlx/pkg/core/shapes"

	"github.com/mlxgrad/mlxgrad/mlxc"
)

// executable implements backends.Executable. Any number of goroutines may execute it.
type executable struct {
	backend   *backend
	main      *function
	functions []*function
	finalized atomic.Bool
}

var _ backends.Executable = (*executable)(nil)

// Finalize frees the compiled functions and the constants. Later executions return an error.
func (e *executable) Finalize() {
	if !e.finalized.Swap(true) {
		for _, f := range e.functions {
			f.free()
		}
	}
}

func (e *executable) Inputs() (names []string, inputShapes []shapes.Shape) {
	for _, p := range e.main.parameters {
		inputShapes = append(inputShapes, p.shape)
	}
	return e.main.parameterNames, inputShapes
}

func (e *executable) Outputs() (outputShapes []shapes.Shape) {
	for _, v := range e.main.outputs {
		outputShapes = append(outputShapes, v.shape)
	}
	return outputShapes
}

// Execute computes the outputs. It frees donated inputs before MLX computes, so that MLX may reuse their memory.
func (e *executable) Execute(
	inputs []backends.Buffer, donate []bool, device backends.DeviceNum,
) (outputs []backends.Buffer, err error) {
	if e.finalized.Load() {
		return nil, fmt.Errorf("gomlx: Execute: the executable of %q was finalized", e.main.builder.name)
	}
	if err := e.backend.checkDevice("Execute", device); err != nil {
		return nil, err
	}
	params := e.main.parameters
	if len(inputs) != len(params) || donate != nil && len(donate) != len(params) {
		return nil, fmt.Errorf("gomlx: Execute: there are %d inputs and %d donations; %q has %d parameters",
			len(inputs), len(donate), e.main.builder.name, len(params))
	}
	args := make([]*mlxc.Array, len(inputs))
	for i, input := range inputs {
		buf, array, err := e.backend.asBuffer("Execute", input)
		if err != nil {
			return nil, fmt.Errorf("input %d: %w", i, err)
		}
		if !buf.shape.Equal(params[i].shape) {
			return nil, fmt.Errorf("gomlx: Execute: input %d has the shape %v; parameter %q has %v",
				i, buf.shape, e.main.parameterNames[i], params[i].shape)
		}
		args[i] = array
	}
	err = e.backend.outsideScopes(func() error {
		results, err := e.main.call(args)
		if err != nil {
			return err
		}
		for i, r := range results {
			// A result may be an argument, a constant, or another result. Its buffer needs a handle of its own.
			results[i] = r.Reshape(r.Shape()...)
		}
		for i, d := range donate {
			if d {
				inputs[i].(*buffer).free()
			}
		}
		if err := mlxc.Eval(results...); err != nil {
			return err
		}
		for i, r := range results {
			shape := e.main.outputs[i].shape
			outputs = append(outputs, &buffer{backend: e.backend, shape: shape, array: r.Keep()})
		}
		return nil
	})
	return outputs, err
}
