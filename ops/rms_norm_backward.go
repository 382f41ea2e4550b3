package ops

import (
	"github.com/mlxgrad/mlxgrad/customkernels"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

var rmsNormKernels = newShaderFile("rms_norm_backward.metal")

// rmsNormBackward returns dx and, with a weight, dweight.
func rmsNormBackward(on target, x, weight, dy *mlxc.Array, eps float32) []*mlxc.Array {
	return rmsNormBackwardWithSum(on, x, weight, dy, nil, eps)
}

// rmsNormBackwardWithSum is rmsNormBackward where x has a cotangent dh of its own,
// unless dh is nil.
func rmsNormBackwardWithSum(on target, x, weight, dy, dh *mlxc.Array, eps float32) []*mlxc.Array {
	if x.Size() == 0 {
		return zerosLike(x, weight)
	}
	n := normRowsOf(x, weight, dy, eps)
	defer n.dy.Free()
	rows, width := n.rows, n.width
	g := summedRowsOf(on.backend, x.DType(), rows, width)
	sum := dh
	if sum == nil {
		sum = n.dy // not read
	} else {
		sum = sum.AsType(x.DType())
		defer sum.Free()
	}
	dtype, chunk := mlxc.TemplateArg{Name: "T", Value: x.DType()}, mlxc.TemplateArg{Name: "VEC", Value: g.chunk}
	hasWeight := mlxc.TemplateArg{Name: "HAS_WEIGHT", Value: weight != nil}
	template := []mlxc.TemplateArg{dtype, chunk, {Name: "VECS_PER_THREAD", Value: g.packs}, hasWeight, {Name: "HAS_SUM", Value: dh != nil}}
	partials, undefined := mlxc.Output{Shape: []int{1}, DType: mlxc.Float32}, []string{"partial_dw"}
	if weight != nil {
		partials.Shape, undefined = []int{g.groups, width}, nil
	}

	var results []*mlxc.Array
	if g.blocks == 1 {
		results = on.launch(rmsNormKernels.kernel("rms_norm_backward"), customkernels.Launch{
			Grid:             [3]int{g.groups * g.threads},
			Threadgroup:      [3]int{g.threads},
			MinGroupsPerCore: g.resident,
			Template: append(template,
				mlxc.TemplateArg{Name: "HELD_T", Value: g.heldAs},
				mlxc.TemplateArg{Name: "VEC_UNALIGNED", Value: g.loose},
				mlxc.TemplateArg{Name: "PREFETCH", Value: g.ahead}),
			Outputs:   []mlxc.Output{{Shape: x.Shape(), DType: x.DType()}, partials},
			Undefined: undefined,
		}, x, n.w, n.dy, sum, n.args.rows, n.args.width, n.args.eps)
	} else {
		together := rowsTogether(on.backend)
		groups := independentRowsOf(on.backend, x.DType(), (rows+together-1)/together, width).groups
		statistics := on.launch(rmsNormKernels.kernel("rms_norm_backward_statistics"), customkernels.Launch{
			Grid:        [3]int{groups * g.threads},
			Threadgroup: [3]int{g.threads},
			Template:    []mlxc.TemplateArg{dtype, chunk, {Name: "ROWS_PER_STEP", Value: together}, hasWeight},
			Outputs:     []mlxc.Output{{Shape: []int{rows, 2}, DType: mlxc.Float32}},
		}, x, n.w, n.dy, n.args.rows, n.args.width, n.args.eps)[0]
		defer statistics.Free()
		results = on.launch(rmsNormKernels.kernel("rms_norm_backward_columns"), customkernels.Launch{
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

// rmsNormBackwardSeparate is rmsNormBackward in three kernels.
func rmsNormBackwardSeparate(on target, x, weight, dy *mlxc.Array, eps float32) []*mlxc.Array {
	if x.Size() == 0 {
		return zerosLike(x, weight)
	}
	n := normRowsOf(x, weight, dy, eps)
	defer n.dy.Free()
	rows, width := n.rows, n.width
	g := rowsOf(on.backend, x.DType(), rows, width)
	dtype, chunk := mlxc.TemplateArg{Name: "T", Value: x.DType()}, mlxc.TemplateArg{Name: "VEC", Value: g.chunk}

	rmsInv := on.launch(rmsNormKernels.kernel("rms_norm_compute_rms_inv"), customkernels.Launch{
		Grid:        [3]int{g.groups * g.threads},
		Threadgroup: [3]int{g.threads},
		Template:    []mlxc.TemplateArg{dtype, chunk},
		Outputs:     []mlxc.Output{{Shape: []int{rows}, DType: mlxc.Float32}},
	}, x, n.args.rows, n.args.width, n.args.eps)[0]
	defer rmsInv.Free()

	dx := on.launch(rmsNormKernels.kernel("rms_norm_backward_dx"), customkernels.Launch{
		Grid:        [3]int{g.groups * g.threads},
		Threadgroup: [3]int{g.threads},
		Template:    []mlxc.TemplateArg{dtype, chunk, {Name: "VECS_PER_THREAD", Value: g.packs}, {Name: "HAS_WEIGHT", Value: weight != nil}},
		Outputs:     []mlxc.Output{{Shape: x.Shape(), DType: x.DType()}},
	}, x, n.w, n.dy, rmsInv, n.args.rows, n.args.width)[0]
	if weight == nil {
		return []*mlxc.Array{dx, nil}
	}

	c := columnSumTuning[on.backend].columnGeometry
	c.vec = max(c.vec, g.chunk)
	dw := on.launch(rmsNormKernels.kernel("rms_norm_backward_dw"), customkernels.Launch{
		Grid:        [3]int{c.threadgroups(width) * c.threads},
		Threadgroup: [3]int{c.threads},
		Template:    []mlxc.TemplateArg{dtype, {Name: "VEC", Value: c.vec}, {Name: "MAX_SIMDGROUPS", Value: c.simdgroups()}},
		Outputs:     []mlxc.Output{{Shape: []int{width}, DType: weight.DType()}},
	}, x, n.dy, rmsInv, n.args.rows, n.args.width)[0]
	return []*mlxc.Array{dx, dw}
}
