package ops

import (
	"github.com/mlxgrad/mlxgrad/customkernels"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

var layerNormKernels = newShaderFile("layer_norm_backward.metal")

// layerNormThreads is the largest threadgroup of the layer norm's kernels that hold rows
// or their moments. A thread has five elements in registers for each of its columns, x,
// dy, w, dw and db, one more than the root-mean-square norm's: the 40 of 8 columns and
// what finds them do not fit the 52 registers of a thread of 1024, but the 69 of 768.
const layerNormThreads = 768

// layerNormBackward returns dx, with a weight dweight, and with a bias dbias.
func layerNormBackward(on target, x, weight, bias, dy *mlxc.Array, eps float32) []*mlxc.Array {
	if x.Size() == 0 {
		return zerosLike(x, weight, bias)
	}
	n := normRowsOf(x, weight, dy, eps)
	defer n.dy.Free()
	rows, width := n.rows, n.width
	g := summedRowsOf(on.backend, x.DType(), rows, width)
	dtype, chunk, packs, hasWeight, hasBias := layerNormTemplate(x, weight, bias, g)
	template := []mlxc.TemplateArg{dtype, chunk, packs, hasWeight, hasBias}

	var results []*mlxc.Array
	if g.blocks == 1 && g.threads <= layerNormThreads {
		results = on.launch(layerNormKernels.kernel("layer_norm_backward"), customkernels.Launch{
			Grid:             [3]int{g.groups * g.threads},
			Threadgroup:      [3]int{g.threads},
			MinGroupsPerCore: g.resident,
			Template: append(template,
				mlxc.TemplateArg{Name: "HELD_T", Value: g.heldAs},
				mlxc.TemplateArg{Name: "VEC_UNALIGNED", Value: g.loose},
				mlxc.TemplateArg{Name: "ACCUMULATORS", Value: g.loose}, // a processor's vectors, or the fewest registers
				mlxc.TemplateArg{Name: "PREFETCH", Value: g.ahead}),
			Outputs:   []mlxc.Output{{Shape: x.Shape(), DType: x.DType()}, layerNormPartial(weight, bias, g, width)},
			Undefined: layerNormUndefined(weight, bias),
		}, x, n.w, n.dy, n.args.rows, n.args.width, n.args.eps)
	} else {
		g.groups = max(g.groups/2, 1) // there are two matrices of their sums
		together := rowsTogether(on.backend)
		groups := independentRowsOf(on.backend, x.DType(), (rows+together-1)/together, width).groups
		threads := min(g.threads, 512) // for the sums of the rows together
		statistics := on.launch(layerNormKernels.kernel("layer_norm_backward_statistics"), customkernels.Launch{
			Grid:        [3]int{groups * threads},
			Threadgroup: [3]int{threads},
			Template:    []mlxc.TemplateArg{dtype, chunk, {Name: "ROWS_PER_STEP", Value: together}, hasWeight},
			Outputs:     []mlxc.Output{{Shape: []int{rows, 4}, DType: mlxc.Float32}},
		}, x, n.w, n.dy, n.args.rows, n.args.width, n.args.eps)[0]
		defer statistics.Free()
		results = on.launch(layerNormKernels.kernel("layer_norm_backward_columns"), customkernels.Launch{
			Grid:        [3]int{g.blocks * g.threads, g.groups},
			Threadgroup: [3]int{g.threads, 1},
			Template:    template,
			Outputs:     []mlxc.Output{{Shape: x.Shape(), DType: x.DType()}, layerNormPartial(weight, bias, g, width)},
			Undefined:   layerNormUndefined(weight, bias),
		}, x, n.w, n.dy, statistics, n.args.rows, n.args.width)
	}
	dx, partial := results[0], results[1]
	defer partial.Free()
	if weight == nil && bias == nil {
		return []*mlxc.Array{dx, nil, nil}
	}
	return layerNormGradients(dx, weight, bias, columnSum(on, partial, x.DType()))
}

// layerNormBackwardSeparate is layerNormBackward in three kernels.
func layerNormBackwardSeparate(on target, x, weight, bias, dy *mlxc.Array, eps float32) []*mlxc.Array {
	if x.Size() == 0 {
		return zerosLike(x, weight, bias)
	}
	n := normRowsOf(x, weight, dy, eps)
	defer n.dy.Free()
	rows, width := n.rows, n.width
	g := rowsOf(on.backend, x.DType(), rows, width)
	dtype, chunk, packs, hasWeight, hasBias := layerNormTemplate(x, weight, bias, g)

	// What a group reads of w is a fortieth of the traffic of 14 rows.
	g.groups = max(min(g.groups, rows/14), 1)
	threads := min(g.threads, layerNormThreads)
	input := on.launch(layerNormKernels.kernel("layer_norm_bwd_input"), customkernels.Launch{
		Grid:        [3]int{g.groups * threads},
		Threadgroup: [3]int{threads},
		Template:    []mlxc.TemplateArg{dtype, chunk, packs, hasWeight},
		Outputs: []mlxc.Output{
			{Shape: x.Shape(), DType: x.DType()},
			{Shape: []int{rows, 2}, DType: mlxc.Float32},
		},
	}, x, n.w, n.dy, n.args.rows, n.args.width, n.args.eps)
	dx, statistics := input[0], input[1]
	defer statistics.Free()
	if weight == nil && bias == nil {
		return []*mlxc.Array{dx, nil, nil}
	}

	g = gammaRowsOf(on.backend, x.DType(), rows, width)
	output := layerNormPartial(weight, bias, g, width)
	if g.groups == 1 {
		output.DType = x.DType()
	}
	partial := on.launch(layerNormKernels.kernel("layer_norm_bwd_gamma_partial"), customkernels.Launch{
		Grid:        [3]int{g.blocks * g.threads, g.groups},
		Threadgroup: [3]int{g.threads, 1},
		Template:    []mlxc.TemplateArg{dtype, {Name: "PARTIAL_T", Value: output.DType}, chunk, packs, hasWeight, hasBias},
		Outputs:     []mlxc.Output{output},
	}, x, n.dy, statistics, n.args.rows, n.args.width)[0]
	defer partial.Free()
	if g.groups == 1 {
		flat := partial.Reshape(-1)
		defer flat.Free()
		return layerNormGradients(dx, weight, bias, flat.Split(flat.Size()/width, 0))
	}
	sums := columnSumBy(on, layerNormKernels.kernel("layer_norm_bwd_gamma_reduce"), partial, x.DType())
	return layerNormGradients(dx, weight, bias, sums)
}

// gammaRowsOf is rowsOf for the separate form's groups, which need no row whole: each of
// their simdgroups has the columns of a block, and a share of the rows. What a group adds
// up, four floats moved for a column, is less than a hundredth of 512 rows in half
// precision.
func gammaRowsOf(d mlxc.Backend, dtype mlxc.DType, rows, width int) rowGeometry {
	g := rowsOf(d, dtype, rows, width)
	lanes := min(g.threads, 32)
	held := lanes * g.packs * g.chunk
	g.blocks = (width + held - 1) / held
	g.threads = columnTuning[d].threads
	g.groups = max(min(g.groups, rows/(64*g.threads/lanes)), 1)
	return g
}

// layerNormTemplate is the template arguments of which each kernel takes some.
func layerNormTemplate(x, weight, bias *mlxc.Array, g rowGeometry) (dtype, chunk, packs, hasWeight, hasBias mlxc.TemplateArg) {
	return mlxc.TemplateArg{Name: "T", Value: x.DType()},
		mlxc.TemplateArg{Name: "VEC", Value: g.chunk},
		mlxc.TemplateArg{Name: "VECS_PER_THREAD", Value: g.packs},
		mlxc.TemplateArg{Name: "HAS_WEIGHT", Value: weight != nil},
		mlxc.TemplateArg{Name: "HAS_BIAS", Value: bias != nil}
}

// layerNormPartial is for the groups' sums: a matrix for each of the parameters that
// there are.
func layerNormPartial(weight, bias *mlxc.Array, g rowGeometry, width int) mlxc.Output {
	matrices := 0
	for _, parameter := range []*mlxc.Array{weight, bias} {
		if parameter != nil {
			matrices++
		}
	}
	if matrices == 0 {
		return mlxc.Output{Shape: []int{1}, DType: mlxc.Float32} // not written
	}
	return mlxc.Output{Shape: []int{matrices, g.groups, width}, DType: mlxc.Float32}
}

// layerNormUndefined names the output of layerNormPartial if there are no parameters to sum for.
func layerNormUndefined(weight, bias *mlxc.Array) []string {
	if weight == nil && bias == nil {
		return []string{"partial"}
	}
	return nil
}

// layerNormGradients puts the sums, of dweight and dbias, in the place of the parameters
// that there are.
func layerNormGradients(dx, weight, bias *mlxc.Array, sums []*mlxc.Array) []*mlxc.Array {
	grads := []*mlxc.Array{dx, nil, nil}
	if weight != nil {
		grads[1], sums = sums[0], sums[1:]
	}
	if bias != nil {
		grads[2] = sums[0]
	}
	return grads
}
