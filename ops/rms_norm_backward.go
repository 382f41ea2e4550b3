package ops

import (
	"github.com/mlxgrad/mlxgrad/customkernels"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

var (
	rmsNormKernels = family("rms_norm_backward.metal")
	sumKernels     = family("column_sum.metal")
)

// rmsNormBackward returns dx and, with a weight, dweight.
func rmsNormBackward(on launcher, x, weight, dy *mlxc.Array, eps float32) []*mlxc.Array {
	return rmsNormBackwardWithSum(on, x, weight, dy, nil, eps)
}

// rmsNormBackwardWithSum is rmsNormBackward where x has a cotangent dh of its own,
// unless dh is nil.
func rmsNormBackwardWithSum(on launcher, x, weight, dy, dh *mlxc.Array, eps float32) []*mlxc.Array {
	if x.Size() == 0 {
		return zerosLike(x, weight)
	}
	n := normRowsOf(x, weight, dy, eps)
	defer n.dy.Free()
	rows, width := n.rows, n.width
	g := summedRowsOf(on.device, x.DType(), rows, width)
	sum := dh
	if sum == nil {
		sum = n.dy // not read
	} else {
		sum = sum.AsType(x.DType())
		defer sum.Free()
	}
	dtype, chunk := mlxc.TemplateArg{Name: "T", Value: x.DType()}, mlxc.TemplateArg{Name: "C", Value: g.chunk}
	hasWeight := mlxc.TemplateArg{Name: "HAS_WEIGHT", Value: weight != nil}
	template := []mlxc.TemplateArg{dtype, chunk, {Name: "R", Value: g.packs}, hasWeight, {Name: "HAS_SUM", Value: dh != nil}}
	partials, undefined := mlxc.Output{Shape: []int{1}, DType: mlxc.Float32}, []string{"partial_dw"}
	if weight != nil {
		partials.Shape, undefined = []int{g.groups, width}, nil
	}

	var results []*mlxc.Array
	if g.blocks == 1 {
		results = on.launch(rmsNormKernels.get("rms_norm_backward"), customkernels.Launch{
			Grid:        [3]int{g.groups * g.threads},
			Threadgroup: [3]int{g.threads},
			Resident:    g.resident,
			Template: append(template,
				mlxc.TemplateArg{Name: "H", Value: g.heldAs},
				mlxc.TemplateArg{Name: "U", Value: g.loose},
				mlxc.TemplateArg{Name: "AHEAD", Value: g.ahead}),
			Outputs:   []mlxc.Output{{Shape: x.Shape(), DType: x.DType()}, partials},
			Undefined: undefined,
		}, x, n.w, n.dy, sum, n.args.rows, n.args.width, n.args.eps)
	} else {
		together := rowsTogether(on.device)
		groups := independentRowsOf(on.device, x.DType(), (rows+together-1)/together, width).groups
		statistics := on.launch(rmsNormKernels.get("rms_norm_backward_statistics"), customkernels.Launch{
			Grid:        [3]int{groups * g.threads},
			Threadgroup: [3]int{g.threads},
			Template:    []mlxc.TemplateArg{dtype, chunk, {Name: "B", Value: together}, hasWeight},
			Outputs:     []mlxc.Output{{Shape: []int{rows, 2}, DType: mlxc.Float32}},
		}, x, n.w, n.dy, n.args.rows, n.args.width, n.args.eps)[0]
		defer statistics.Free()
		results = on.launch(rmsNormKernels.get("rms_norm_backward_columns"), customkernels.Launch{
			Grid:        [3]int{g.blocks * g.threads, g.groups},
			Threadgroup: [3]int{g.threads, 1},
			Template:    template,
			Outputs:     []mlxc.Output{{Shape: x.Shape(), DType: x.DType()}, partials},
			Undefined:   undefined,
		}, x, n.w, n.dy, sum, statistics, n.args.rows, n.args.width)
	}
	dx, partial := results[0], results[1]
	defer partial.Free()
	if weight == nil {
		return []*mlxc.Array{dx, nil}
	}
	return []*mlxc.Array{dx, columnSum(on, partial, weight.DType())[0]}
}

// rowsTogether is how many rows the statistics kernel has in hand at a time, so that the
// weight's traffic is divided by it: 16 are a fiftieth of that of x and dy. A host reads
// the weight from a cache.
func rowsTogether(d device) int {
	if d == host {
		return 1
	}
	return 16
}

// columnSum adds up the rows of each of the partial sums, which have the same shape,
// and rounds the results to dtype.
func columnSum(on launcher, partial *mlxc.Array, dtype mlxc.DType) []*mlxc.Array {
	return columnSumWith(on, sumKernels.get("column_sum"), partial, dtype)
}

// columnSumWith is columnSum by a kernel that is column_sum under another name.
func columnSumWith(on launcher, kernel *customkernels.Kernel, partial *mlxc.Array, dtype mlxc.DType) []*mlxc.Array {
	rows, width := partial.Dim(-2), partial.Dim(-1)
	matrices := partial.Size() / (rows * width)
	g := sumTable[on.device]
	args := newRowArgs(rows, width, 0)
	sums := on.launch(kernel, customkernels.Launch{
		Grid:        [3]int{g.groups(width) * g.threads, matrices},
		Threadgroup: [3]int{g.threads, 1},
		Template: []mlxc.TemplateArg{
			{Name: "T", Value: dtype},
			{Name: "C", Value: g.chunk},
			{Name: "B", Value: g.together},
			{Name: "S", Value: g.simdgroups()},
		},
		Outputs: []mlxc.Output{{Shape: []int{matrices * width}, DType: dtype}},
	}, partial, args.rows, args.width)[0]
	if matrices == 1 {
		return []*mlxc.Array{sums}
	}
	defer sums.Free()
	return sums.Split(matrices, 0)
}

// rmsNormBackwardSeparate is rmsNormBackward in three kernels.
func rmsNormBackwardSeparate(on launcher, x, weight, dy *mlxc.Array, eps float32) []*mlxc.Array {
	if x.Size() == 0 {
		return zerosLike(x, weight)
	}
	n := normRowsOf(x, weight, dy, eps)
	defer n.dy.Free()
	rows, width := n.rows, n.width
	g := rowsOf(on.device, x.DType(), rows, width)
	dtype, chunk := mlxc.TemplateArg{Name: "T", Value: x.DType()}, mlxc.TemplateArg{Name: "C", Value: g.chunk}

	rmsInv := on.launch(rmsNormKernels.get("rms_norm_compute_rms_inv"), customkernels.Launch{
		Grid:        [3]int{g.groups * g.threads},
		Threadgroup: [3]int{g.threads},
		Template:    []mlxc.TemplateArg{dtype, chunk},
		Outputs:     []mlxc.Output{{Shape: []int{rows}, DType: mlxc.Float32}},
	}, x, n.args.rows, n.args.width, n.args.eps)[0]
	defer rmsInv.Free()

	dx := on.launch(rmsNormKernels.get("rms_norm_backward_dx"), customkernels.Launch{
		Grid:        [3]int{g.groups * g.threads},
		Threadgroup: [3]int{g.threads},
		Template:    []mlxc.TemplateArg{dtype, chunk, {Name: "R", Value: g.packs}, {Name: "HAS_WEIGHT", Value: weight != nil}},
		Outputs:     []mlxc.Output{{Shape: x.Shape(), DType: x.DType()}},
	}, x, n.w, n.dy, rmsInv, n.args.rows, n.args.width)[0]
	if weight == nil {
		return []*mlxc.Array{dx, nil}
	}

	c := sumTable[on.device].columnGeometry
	c.chunk = max(c.chunk, g.chunk)
	dw := on.launch(rmsNormKernels.get("rms_norm_backward_dw"), customkernels.Launch{
		Grid:        [3]int{c.groups(width) * c.threads},
		Threadgroup: [3]int{c.threads},
		Template:    []mlxc.TemplateArg{dtype, {Name: "C", Value: c.chunk}, {Name: "S", Value: c.simdgroups()}},
		Outputs:     []mlxc.Output{{Shape: []int{width}, DType: weight.DType()}},
	}, x, n.dy, rmsInv, n.args.rows, n.args.width)[0]
	return []*mlxc.Array{dx, dw}
}
