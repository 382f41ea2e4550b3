package ops

import (
	"fmt"
	"math"
	"slices"

	"github.com/mlxgrad/mlxgrad/customkernels"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// checkNorm returns an error if an argument that all norms have is invalid. weight may be nil.
func checkNorm(x, weight *mlxc.Array, eps float32) error {
	if err := checkRows("x", x); err != nil {
		return err
	}
	if err := checkVector("weight", weight, x); err != nil {
		return err
	}
	if !(eps >= 0) || math.IsInf(float64(eps), 0) {
		return fmt.Errorf("eps is %v; it must be finite and not negative", eps)
	}
	return nil
}

// A normKey identifies the graphs of a norm. See withGradient.
type normKey struct {
	op  string
	eps float32
}

// rowScalars returns the last inputs of the norms' kernels: rows, width and eps. They are inputs and not template
// arguments, so that one compiled kernel serves all values.
func rowScalars(rows, width int, eps float32) []*mlxc.Array {
	return append(uint32Args(rows, width), customkernels.Constant(eps))
}

// A normGradient holds the operands of a norm's backward kernels.
type normGradient struct {
	x, weight   *mlxc.Array   // weight may be nil
	dy          *mlxc.Array   // in x's dtype
	operands    []*mlxc.Array // the kernels' first inputs: x, weight, dy; dy replaces a nil weight, unread
	scalars     []*mlxc.Array // see rowScalars
	rows, width int
}

// newNormGradient returns the operands of the kernels for a cotangent dy. x must have elements. The caller frees the
// result.
func newNormGradient(x, weight, dy *mlxc.Array, eps float32) normGradient {
	width := x.Dim(-1)
	rows := x.Size() / width
	n := normGradient{x: x, weight: weight, dy: dy.AsType(x.DType()), rows: rows, width: width}
	w := weight
	if w == nil {
		w = n.dy
	}
	n.operands = []*mlxc.Array{x, w, n.dy}
	n.scalars = rowScalars(rows, width, eps)
	return n
}

func (n normGradient) free() { n.dy.Free() }

func (n normGradient) template(g rowGeometry) rowTemplate {
	return rowTemplate{dtype: n.x.DType(), geometry: g, hasWeight: n.weight != nil}
}

// like returns the description of an output like x.
func (n normGradient) like() mlxc.Output { return mlxc.Output{Shape: n.x.Shape(), DType: n.x.DType()} }

// partialSums returns the description of an output of partial sums: a [groups, width] matrix for each parameter that is
// not nil. Without parameters it has one element, which no kernel writes.
func (n normGradient) partialSums(groups int, parameters []*mlxc.Array) mlxc.Output {
	if !hasAny(parameters) {
		return mlxc.Output{Shape: []int{1}, DType: mlxc.Float32}
	}
	matrices := 0
	for _, p := range parameters {
		if p != nil {
			matrices++
		}
	}
	return mlxc.Output{Shape: []int{matrices, groups, n.width}, DType: mlxc.Float32}
}

// hasAny reports whether an array is not nil.
func hasAny(arrays []*mlxc.Array) bool {
	return slices.ContainsFunc(arrays, func(a *mlxc.Array) bool { return a != nil })
}

// gradients returns dx and one gradient per parameter. sums has the gradients of the parameters that are not nil, in
// order, or only the error of a failed launch. A nil parameter has a nil gradient.
func gradients(dx *mlxc.Array, parameters, sums []*mlxc.Array) []*mlxc.Array {
	grads := []*mlxc.Array{dx}
	for _, p := range parameters {
		var grad *mlxc.Array
		if p != nil {
			grad = sums[0]
			sums = sums[min(1, len(sums)-1):]
		}
		grads = append(grads, grad)
	}
	return grads
}

// normKernels describes the backward kernels of a norm. If a threadgroup holds a row, one fused kernel computes dx and
// partial sums of the parameters' gradients. Otherwise one kernel computes the statistics of the rows, and a second one
// computes dx and the partial sums in blocks of columns. column_sum adds the partial sums.
type normKernels struct {
	shaders           *shaderFile
	name              string // of the fused kernel; the other names add _statistics and _columns
	partial           string // name of the output of partial sums
	maxThreads        int    // per threadgroup of the fused kernel
	statisticsThreads int    // per threadgroup of the statistics kernel, at most
	statistics        int    // floats per row that the statistics kernel writes
}

// backward returns dx and one gradient per parameter, nil for a nil parameter. option is the template argument that
// only this norm has (hasSumArg or hasBiasArg).
func (k normKernels) backward(
	on target, n normGradient, option mlxc.TemplateArg, parameters ...*mlxc.Array,
) []*mlxc.Array {
	g := accumulatingRowGeometry(on, n.x.DType(), n.rows, n.width)
	var undefined []string
	if !hasAny(parameters) {
		undefined = []string{k.partial}
	}
	var results []*mlxc.Array
	if g.blocks == 1 && g.threads <= k.maxThreads {
		results = on.launch(k.shaders.kernel(k.name), customkernels.Launch{
			Grid:              [3]int{g.groups * g.threads},
			Threadgroup:       [3]int{g.threads},
			MinGroupsPerCore:  g.groupsPerCore,
			ThreadgroupMemory: g.memory,
			// With PREFETCH = 1, rows of more than 4,096 floats are faster with the code for unaligned views (RATIONALE.md).
			AlignedInputs: g.fullRows && g.prefetch != 1,
			Template:      n.template(g).fusedArgs(option),
			Outputs:       []mlxc.Output{n.like(), n.partialSums(g.groups, parameters)},
			Undefined:     undefined,
		}, slices.Concat(n.operands, n.scalars)...)
	} else {
		g.groups = max(g.groups/len(parameters), 1) // partial sums of two parameters cost no more traffic than of one
		statistics := k.rowStatistics(on, n, g)
		defer statistics.Free()
		results = on.launch(k.shaders.kernel(k.name+"_columns"), customkernels.Launch{
			Grid:        [3]int{g.blocks * g.threads, g.groups},
			Threadgroup: [3]int{g.threads, 1},
			Template:    n.template(g).weightedArgs(option),
			Outputs:     []mlxc.Output{n.like(), n.partialSums(g.groups, parameters)},
			Undefined:   undefined,
		}, slices.Concat(n.operands, []*mlxc.Array{statistics}, n.scalars[:2])...)
	}
	dx, partial := results[0], results[1]
	defer partial.Free()
	var sums []*mlxc.Array
	if hasAny(parameters) {
		sums = columnSum(on, partial, n.x.DType())
	}
	return gradients(dx, parameters, sums)
}

func (k normKernels) rowStatistics(on target, n normGradient, g rowGeometry) *mlxc.Array {
	rowsPerStep := statisticsRowsPerStep(on.backend)
	groups := independentRowGeometry(on.backend, n.x.DType(), ceilDiv(n.rows, rowsPerStep), n.width).groups
	threads := min(g.threads, k.statisticsThreads)
	return on.launch(k.shaders.kernel(k.name+"_statistics"), customkernels.Launch{
		Grid:        [3]int{groups * threads},
		Threadgroup: [3]int{threads},
		Template:    n.template(g).statisticsArgs(rowsPerStep),
		Outputs:     []mlxc.Output{{Shape: []int{n.rows, k.statistics}, DType: mlxc.Float32}},
	}, slices.Concat(n.operands[:3], n.scalars)...)[0]
}
