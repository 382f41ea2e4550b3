package bench

import (
	"cmp"
	"slices"
	"strings"

	"github.com/mlxgrad/mlxgrad/compare"
	"github.com/mlxgrad/mlxgrad/compare/oracle"
	"github.com/mlxgrad/mlxgrad/compare/report"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// Op is an operation with the cases in which it is timed.
type Op struct {
	Name string
	// Pass is timed unless [Options.Passes] says otherwise: Backward if the gradient kernels stand alone, Step if the
	// forward pass does part of the gradient's work.
	Pass  report.Pass
	Cases []Case
}

// Case is a case to time, with a lower bound of its work: the arrays that it has to move, or its FLOPs.
type Case struct {
	compare.Case
	// Moved names the arrays that a pass must read or write: inputs, outputs, and "d" before a name for cotangents and
	// gradients. It is nil if arithmetic (FLOPs) limits the time.
	Moved map[report.Pass][]string
	// FLOPs is the arithmetic of the matrix products in a pass. A multiplication and an addition count 2.
	FLOPs map[report.Pass]float64
	// Deviations has the standard deviation of random inputs, by name; 1 if a name is missing.
	Deviations map[string]float64
	// LossScale is the cotangent of scalar outputs if the inputs have 16 bits; 1 if it is 0.
	LossScale float64
	// Dense is set if MLX's gradient is a view, which takes no time until it is read. The timed work then includes a
	// contiguous copy.
	Dense bool
}

// Elements returns the number of elements of the largest array.
func (c Case) Elements() int {
	largest := 0
	for _, in := range c.Inputs {
		largest = max(largest, oracle.Size(in.Shape))
	}
	for _, out := range c.Outputs {
		largest = max(largest, oracle.Size(out.Shape))
	}
	return largest
}

// Bytes returns the size of the arrays that a pass must move, each counted once. It is 0 if FLOPs limits the time.
func (c Case) Bytes(pass report.Pass, dtype mlxc.DType) int {
	total := 0
	for _, name := range c.Moved[pass] {
		total += c.sizeOf(name, dtype)
	}
	return total
}

// sizeOf returns the size of a named array in bytes. A cotangent is like its output, a gradient like its input.
func (c Case) sizeOf(name string, dtype mlxc.DType) int {
	for _, candidate := range []string{name, strings.TrimPrefix(name, "d")} {
		if i := slices.IndexFunc(c.Inputs, func(in compare.Input) bool { return in.Name == candidate }); i >= 0 {
			return oracle.Size(c.Inputs[i].Shape) * c.Inputs[i].Kind.StoredDType(dtype).Size()
		}
		if i := slices.IndexFunc(c.Outputs, func(out compare.Output) bool { return out.Name == candidate }); i >= 0 {
			return oracle.Size(c.Outputs[i].Shape) * c.Outputs[i].StoredDType(dtype).Size()
		}
	}
	panic("bench: no array " + name + " in " + c.Name) // a test looks up every name
}

// LargestMoved returns the size of the largest array that a pass moves, in elements of dtype. It panics if Moved has no
// array for the pass.
func (c Case) LargestMoved(pass report.Pass, dtype mlxc.DType) int {
	largest := slices.MaxFunc(c.Moved[pass], func(a, b string) int {
		return cmp.Compare(c.sizeOf(a, dtype), c.sizeOf(b, dtype))
	})
	return c.sizeOf(largest, dtype) / dtype.Size()
}
