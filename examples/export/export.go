package main

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mlxgrad/mlxgrad/mlxc"
	"github.com/mlxgrad/mlxgrad/mlxc/mlxio"
	"github.com/mlxgrad/mlxgrad/mlxc/tree"
)

const (
	stepFile  = "step.mlxfn"        // the training step, a function with named arguments
	stateFile = "state.safetensors" // its first arguments; the metadata entry outputs names its results
)

// export writes the step, its first arguments, and the Metal text of each kernel to a folder. It returns the names of
// the kernels. With forMac, the step is for Apple GPUs; any machine can export it. Otherwise it is for the default
// device of this machine.
func export(dir string, o operations, forMac bool) (kernels []string, err error) {
	s, err := start()
	if err != nil {
		return nil, err
	}
	first := input{s, quadrants(256)}
	arrays, err := tree.ToMap(first)
	if err != nil {
		return nil, err
	}
	var outputs []string
	f := func(_ []*mlxc.Array, named map[string]*mlxc.Array) (results []*mlxc.Array) {
		trace := func() { outputs, results, err = o.traced(first, named) }
		if forMac {
			mlxc.WithPlaceholderGPU(trace)
		} else {
			trace()
		}
		if err != nil {
			return []*mlxc.Array{mlxc.InvalidArray(err)}
		}
		return results
	}
	if err := mlxc.ExportNamed(filepath.Join(dir, stepFile), f, arrays); err != nil {
		return nil, err
	}
	metadata := map[string]string{"outputs": strings.Join(outputs, " ")}
	if err := mlxio.SaveSafetensors(filepath.Join(dir, stateFile), arrays, metadata); err != nil {
		return nil, err
	}
	return writeKernels(dir, f, arrays)
}

// traced returns the results of the step and their names.
func (o operations) traced(like input, named map[string]*mlxc.Array) ([]string, []*mlxc.Array, error) {
	in, err := tree.FromMap(like, named)
	if err != nil {
		return nil, nil, err
	}
	out, err := o.step(in)
	if err != nil {
		return nil, nil, err
	}
	names, err := tree.Names(out)
	if err != nil {
		return nil, nil, err
	}
	results, err := tree.Flatten(out)
	return names, results, err
}

// writeKernels writes the text of each custom kernel of f, which step.mlxfn contains, to a file of its own.
func writeKernels(dir string, f mlxc.NamedFunc, arrays map[string]*mlxc.Array) ([]string, error) {
	names := slices.Sorted(maps.Keys(arrays))
	var args []*mlxc.Array
	for _, name := range names {
		args = append(args, arrays[name])
	}
	nodes, err := mlxc.Trace(func(args []*mlxc.Array) []*mlxc.Array {
		named := map[string]*mlxc.Array{}
		for i, name := range names {
			named[name] = args[i]
		}
		return f(nil, named)
	}, args)
	if err != nil {
		return nil, err
	}
	texts := map[string]string{}
	for _, n := range nodes {
		if n.Primitive == "CustomKernel" {
			texts[n.Strings[0]] = n.Strings[1]
		}
	}
	kernels := slices.Sorted(maps.Keys(texts))
	for _, name := range kernels {
		if err := os.WriteFile(filepath.Join(dir, name+".metal"), []byte(texts[name]), 0o644); err != nil {
			return nil, err
		}
	}
	return kernels, nil
}

// resume runs an exported step and returns the losses. It needs no code of the model.
func resume(dir string, steps int) (losses []float32, err error) {
	step, err := mlxc.Import(filepath.Join(dir, stepFile))
	if err != nil {
		return nil, err
	}
	defer step.Close()
	arrays, metadata, err := mlxio.LoadSafetensors(filepath.Join(dir, stateFile))
	if err != nil {
		return nil, err
	}
	names := strings.Fields(metadata["outputs"])
	for range steps {
		results, err := step.CallNamed(arrays)
		if err != nil {
			return nil, err
		}
		if len(results) != len(names) {
			return nil, fmt.Errorf("%s has %d results; %s names %d", stepFile, len(results), stateFile, len(names))
		}
		if err := mlxc.Eval(results...); err != nil {
			return nil, err
		}
		for i, name := range names {
			arrays[name] = results[i]
		}
		loss, ok := arrays["loss"]
		if !ok {
			return nil, errors.New(stateFile + " names no result loss")
		}
		delete(arrays, "loss")
		value, err := mlxc.Item[float32](loss)
		if err != nil {
			return nil, err
		}
		losses = append(losses, value)
	}
	return losses, nil
}
