package ops

import "github.com/mlxgrad/mlxgrad/mlxc"

// A rowTemplate holds the template parameters of the kernels that process rows. Each method returns the arguments of
// one kind of kernel.
type rowTemplate struct {
	dtype     mlxc.DType // of the storage
	geometry  rowGeometry
	hasWeight bool
}

// vecArgs returns the arguments of kernels that do not hold rows in registers.
func (t rowTemplate) vecArgs() []mlxc.TemplateArg {
	return []mlxc.TemplateArg{{Name: "T", Value: t.dtype}, {Name: "VEC", Value: t.geometry.vec}}
}

// args returns the arguments of kernels that hold rows in registers.
func (t rowTemplate) args() []mlxc.TemplateArg {
	return append(t.vecArgs(), mlxc.TemplateArg{Name: "VECS_PER_THREAD", Value: t.geometry.vecsPerThread})
}

// weightedArgs returns the arguments of kernels with an optional weight, followed by the given options.
func (t rowTemplate) weightedArgs(options ...mlxc.TemplateArg) []mlxc.TemplateArg {
	return append(append(t.args(), t.weightArg()), options...)
}

// fusedArgs returns the arguments of the fused norm kernels, which have one option.
func (t rowTemplate) fusedArgs(option mlxc.TemplateArg) []mlxc.TemplateArg {
	return append(t.weightedArgs(option),
		mlxc.TemplateArg{Name: "VEC_UNALIGNED", Value: t.geometry.vecUnaligned},
		mlxc.TemplateArg{Name: "PREFETCH", Value: t.geometry.prefetch},
		mlxc.TemplateArg{Name: "COPY_THREADS", Value: t.geometry.copyThreads},
		mlxc.TemplateArg{Name: "FULL_ROWS", Value: t.geometry.fullRows},
		mlxc.TemplateArg{Name: "ALL_ALIGNED", Value: t.geometry.allAligned},
		mlxc.TemplateArg{Name: "ROWS_PER_GROUP", Value: t.geometry.rowsPerGroup},
		t.bypassArg())
}

// statisticsArgs returns the arguments of the norms' statistics kernels.
func (t rowTemplate) statisticsArgs(rowsPerStep int) []mlxc.TemplateArg {
	return append(t.vecArgs(), mlxc.TemplateArg{Name: "ROWS_PER_STEP", Value: rowsPerStep}, t.weightArg())
}

// gammaPartialArgs returns the arguments of layer_norm_bwd_gamma_partial. partial is the dtype of the partial sums.
func (t rowTemplate) gammaPartialArgs(partial mlxc.DType, hasBias bool) []mlxc.TemplateArg {
	return append(t.weightedArgs(hasBiasArg(hasBias)), mlxc.TemplateArg{Name: "PARTIAL_T", Value: partial})
}

func (t rowTemplate) bypassArg() mlxc.TemplateArg {
	return mlxc.TemplateArg{Name: "BYPASS_CACHES", Value: t.geometry.bypassCaches}
}

func (t rowTemplate) weightArg() mlxc.TemplateArg {
	return mlxc.TemplateArg{Name: "HAS_WEIGHT", Value: t.hasWeight}
}

// hasSumArg returns the option of the RMS norm's backward kernels.
func hasSumArg(hasSum bool) mlxc.TemplateArg { return mlxc.TemplateArg{Name: "HAS_SUM", Value: hasSum} }

// hasBiasArg returns the option of the layer norm's backward kernels.
func hasBiasArg(hasBias bool) mlxc.TemplateArg {
	return mlxc.TemplateArg{Name: "HAS_BIAS", Value: hasBias}
}

// A weightGradientTemplate holds the template parameters of rms_norm_backward_dw.
type weightGradientTemplate struct {
	dtype           mlxc.DType
	vec, simdgroups int
}

func (t weightGradientTemplate) args() []mlxc.TemplateArg {
	return []mlxc.TemplateArg{
		{Name: "T", Value: t.dtype},
		{Name: "VEC", Value: t.vec},
		{Name: "MAX_SIMDGROUPS", Value: t.simdgroups},
	}
}
