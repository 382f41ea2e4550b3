package mlxc_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/internal/testdevice"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// Wrong calls of operations, and the required parts of their errors. For some of them MLX would end the process, or
// access memory outside the array.
func TestWrongOperations(t *testing.T) {
	testdevice.CPUOnly(t, "computes float64, or an operation that MLX has for CPUs only")
	a := mlxc.FromSlice([]float32{1, 2, 3, 4, 5, 6}, 2, 3)
	b := mlxc.FromSlice([]float32{1, 2, 3, 4})
	i := mlxc.FromSlice([]int32{0, 1})
	yes := mlxc.FromSlice([]bool{true, false, true})
	freed := mlxc.FromSlice([]float32{1})
	freed.Free()
	none, scalar := mlxc.Zeros(mlxc.Float32, 0), mlxc.Scalar[float32](1)
	bad := a.Add(b)
	p := func(axis, before, after int) mlxc.Padding {
		return mlxc.Padding{Axis: axis, Before: before, After: after}
	}
	first := func(x *mlxc.Array, _ *mlxc.Array) *mlxc.Array { return x }
	// A broadcast of zeros takes no memory until it is copied to row-major order.
	zeros := func(shape ...int) *mlxc.Array { return mlxc.Zeros(mlxc.Float32, shape...) }
	const huge = 1 << 30
	for name, c := range map[string]struct {
		got   *mlxc.Array
		parts []string
	}{
		"bitwise_and of floats": {
			a.BitwiseAnd(i.AsType(mlxc.Int32).Reshape(2, 1)),
			[]string{"bitwise_and", "float32(2,3), int32(2,1)"},
		},
		"left_shift of floats": {a.LeftShift(a), []string{"left_shift", "float32(2,3)"}},
		"right_shift by floats": {
			i.RightShift(mlxc.Ones(mlxc.Float32, 2)),
			[]string{"right_shift", "int32(2), float32(2)"},
		},
		"bitwise_invert of floats": {a.BitwiseInvert(), []string{"bitwise_invert", "float32(2,3)"}},
		"negative of booleans":     {yes.Neg(), []string{"negative", "bool(3)", "logical_not"}},
		"complex floor":            {mlxc.FromSlice([]complex64{1}).Floor(), []string{"floor", "complex64(1)"}},
		"complex divmod": {
			first(mlxc.FromSlice([]complex64{1}).DivMod(a)),
			[]string{"floor_divide", "complex64(1), float32(2,3)"},
		},
		"too many decimals": {a.RoundTo(38), []string{"round", "decimals is 38", "−37 to 37"}},
		"too few decimals":  {a.RoundTo(math.MinInt), []string{"round", "decimals"}},
		"complex NaN": {
			mlxc.FromSlice([]complex64{1}).NaNToNum(mlxc.NaNToNumConfig{}),
			[]string{"nan_to_num", "complex64"},
		},
		"clip without limits":         {a.ClipTo(nil, nil), []string{"clip", "float32(2,3)"}},
		"FP8 of integers":             {i.ToFP8(), []string{"to_fp8", "int32"}},
		"from_fp8 of floats":          {a.FromFP8(mlxc.Float16), []string{"from_fp8", "uint8", "float32"}},
		"a view that does not divide": {a.View(mlxc.Float64), []string{"view", "float32(2,3)", "multiple"}},
		"boolean ids":                 {a.Index(mlxc.IDs(yes)), []string{"index", "the ids are bool", "Where"}},
		"uniform numbers of float64": {
			mlxc.RandomUniform(nil, 0, 1, mlxc.Float64, 2),
			[]string{"random_uniform", "float64", "AsType"},
		},
		"Gumbel numbers of float64": {
			mlxc.RandomGumbel(nil, mlxc.Float64, 2),
			[]string{"random_gumbel", "float64", "AsType"},
		},
		"truncated numbers of float64": {
			mlxc.RandomTruncatedNormal(nil, scalar, scalar, mlxc.Float64, 2),
			[]string{"random_truncated_normal", "float32(), float32()", "AsType"},
		},
		"a view beyond 32 bits":         {zeros(huge).View(mlxc.Uint8), []string{"view", "float32(1073741824)", "2³¹−1"}},
		"a view of a scalar":            {scalar.View(mlxc.Int8), []string{"view", "float32()", "scalar"}},
		"an axis twice":                 {a.Var(1, -1), []string{"float32(2,3)", "Duplicate axes"}},
		"the median of an empty array":  {none.Median(), []string{"median", "float32(0)", "empty"}},
		"the maximum of an empty array": {none.MaxKeepDims(), []string{"max", "float32(0)", "size 0"}},
		"logsumexp of an empty array":   {none.LogSumExp(), []string{"logsumexp", "empty"}},
		"number_of_elements' axis": {
			scalar.NumberOfElements(mlxc.Float32, false, 0),
			[]string{"number_of_elements", "float32()", "no axis 0: the array has 0"},
		},
		"an invalid dtype": {
			a.NumberOfElements(mlxc.DType(77), false),
			[]string{"number_of_elements", "DType(77)"},
		},
		"a scan's axis":                 {a.CumMax(2), []string{"cummax", "float32(2,3)"}},
		"a scan's dtype":                {a.CumSumWith(0, mlxc.ScanConfig{DType: 99}), []string{"cumsum", "DType(99)"}},
		"differences of negative order": {a.Diff(-1, 0), []string{"diff", "float32(2,3)"}},
		"differences beyond 32 bits":    {a.Diff(-1<<40, 0), []string{"diff", "32 bits"}},
		"diff's axis":                   {a.Diff(9, 2), []string{"diff", "float32(2,3)"}},
		"a partition beyond the axis":   {a.Partition(3, 1), []string{"partition", "kth 3"}},
		"a partition before the axis":   {a.ArgPartition(-4, 1), []string{"argpartition", "kth -4"}},
		"topk beyond the axis":          {a.TopK(4, 1), []string{"topk", "k=4", "float32(2,3)"}},
		"negative topk":                 {a.TopK(-1, 1), []string{"topk", "k=-1"}},
		"searchsorted in a matrix":      {a.SearchSorted(b), []string{"searchsorted", "1-D"}},
		"a broadcast beyond memory": {
			zeros(huge, 1).Add(zeros(1, huge)),
			[]string{
				"add", "float32(1073741824,1), float32(1,1073741824)",
				"float32(1073741824,1073741824) exceeds",
			},
		},
		"a broadcast beyond 64 bits": {
			mlxc.Where(zeros(huge, 1, 1), zeros(huge, 1), zeros(huge)),
			[]string{"where", "exceeds the address space"},
		},
		"outer products beyond memory": {
			zeros(huge).Outer(zeros(huge)),
			[]string{"outer", "exceeds the address space"},
		},
		"broadcast_arrays beyond memory": {
			mlxc.BroadcastArrays(zeros(huge, 1), zeros(huge))[1],
			[]string{"broadcast_arrays", "exceeds the address space"},
		},
		"many parts of an empty axis": {
			none.Split(math.MaxInt32, 0)[0],
			[]string{"split", "float32(0)", "2147483647 parts of an axis of size 0"},
		},
		"a negative size":                         {a.Reshape(-2, -3), []string{"reshape", "float32(2,3)", "negative axis"}},
		"a shape that overflows":                  {none.Reshape(1<<16, 1<<16, 1<<16, 1<<16), []string{"reshape", "address space"}},
		"an unknown size beside 0":                {none.Reshape(0, -1), []string{"reshape", "(0,-1) is ambiguous"}},
		"unflatten with an unknown size beside 0": {a.Unflatten(1, 0, -1), []string{"unflatten", "(0,-1) is ambiguous"}},
		"unflatten with two unknown sizes": {
			a.Unflatten(1, -1, -1),
			[]string{"unflatten", "the shape (-1,-1) has several −1"},
		},
		"unflatten into other sizes": {a.Unflatten(1, 2, 2), []string{"nflatten", "float32(2,3)"}},
		"moveaxis' axis":             {a.MoveAxis(0, 2), []string{"moveaxis", "Invalid axis 2"}},
		"flip's axis":                {a.Flip(3), []string{"flip", "float32(2,3)"}},
		"roll's axis":                {a.Roll(1, 5), []string{"roll", "float32(2,3)"}},
		"a shift beyond 32 bits":     {a.Roll(1<<40, 0), []string{"roll", "32 bits"}},
		"strides beyond the end": {
			a.AsStrided([]int{3, 2}, []int{2, 2}, 0),
			[]string{"as_strided", "float32(2,3)", "from element 0 to 6, but there are 6"},
		},
		"strides before the start": {
			a.AsStrided([]int{3}, []int{-1}, 1),
			[]string{"as_strided", "from element -1 to 1"},
		},
		"strides that overflow": {
			a.AsStrided([]int{math.MaxInt32, math.MaxInt32}, []int{math.MaxInt, 1}, 0),
			[]string{"as_strided", "stride"},
		},
		"strides for other axes": {
			a.AsStrided([]int{3}, []int{1, 1}, 0),
			[]string{"as_strided", "1 axes, but there are 2 strides"},
		},
		"an offset beyond the end":            {a.AsStrided(nil, nil, 6), []string{"as_strided", "from element 6 to 6"}},
		"a negative offset":                   {a.AsStrided([]int{0}, []int{1}, -1), []string{"as_strided", "offset is -1"}},
		"pad's axis":                          {a.Pad(nil, p(2, 1, 1)), []string{"pad", "no axis 2: the array has 2"}},
		"negative padding":                    {a.PadEdge(p(0, -1, 1)), []string{"pad", "-1 elements before"}},
		"symmetric padding of an empty array": {none.PadSymmetric(p(0, 1, 1)), []string{"pad", "no elements to pad with"}},
		"a padding value of 4 elements":       {a.Pad(b, p(0, 1, 1)), []string{"pad", "4 elements", "scalar"}},
		"padding beyond an axis's maximum":    {a.PadReflect(p(0, math.MaxInt32, 1)), []string{"pad", "2³¹−1"}},
		"padding beyond 32 bits":              {a.Pad(nil, p(0, math.MaxInt, 1)), []string{"pad", "32 bits"}},
		"a concatenation beyond an axis's maximum": {
			mlxc.Concatenate(0, scalar.BroadcastTo(math.MaxInt32), scalar.BroadcastTo(1)),
			[]string{"concatenate", "2³¹−1"},
		},
		"meshgrid of a matrix": {
			mlxc.Meshgrid(mlxc.MeshgridConfig{}, a, b)[1],
			[]string{"meshgrid", "float32(2,3), float32(4)", "one axis"},
		},
		"arrays that do not broadcast": {
			mlxc.BroadcastArrays(a, b)[1],
			[]string{"broadcast_arrays", "float32(2,3), float32(4)"},
		},
		"unstack's axis":                {a.Unstack(2)[0], []string{"unstack", "float32(2,3)"}},
		"a fill value of another shape": {mlxc.FullLike(b, a), []string{"full", "float32(2,3)", "(4)", "broadcast"}},
		"a matrix of negative size":     {mlxc.Eye(mlxc.Float32, 2, -1, 0), []string{"eye", "negative"}},
		"a triangle beyond memory": {
			mlxc.Tri(mlxc.Float32, math.MaxInt32, math.MaxInt32, 0),
			[]string{"tri", "address space"},
		},
		"steps of 0":                 {mlxc.Arange(mlxc.Float32, 0, 1, 0), []string{"arange", "step is 0"}},
		"steps to infinity":          {mlxc.Arange(mlxc.Float32, 0, math.Inf(1), 1), []string{"arange"}},
		"arange of booleans":         {mlxc.Arange(mlxc.Bool, 0, 1, 1), []string{"arange", "bool"}},
		"a negative number of steps": {mlxc.Linspace(mlxc.Float32, 0, 1, -1), []string{"linspace", "-1"}},
		"the diagonal of a vector":   {b.Diagonal(0, 0, 1), []string{"diagonal", "float32(4)"}},
		"the diagonal of one axis":   {a.Diagonal(0, 1, -1), []string{"diagonal", "same axis"}},
		"a diagonal beyond memory":   {b.Diag(math.MaxInt32 - 4), []string{"diag", "address space"}},
		"a diagonal beyond 32 bits":  {b.Diag(1 << 40), []string{"diag", "32 bits"}},
		"the trace of a vector":      {b.Trace(0, 0, 1), []string{"trace", "float32(4)"}},
		"a position out of range": {
			a.Index(mlxc.At(2)),
			[]string{"index float32(2,3): axis 0: there is no position 2: the axis has size 2"},
		},
		"a negative position out of range": {
			a.Index(mlxc.All, mlxc.At(-4)),
			[]string{"index", "axis 1: there is no position -4"},
		},
		"a range out of range":                {a.Index(mlxc.All, mlxc.Range(1, 4)), []string{"index", "no positions 1:4: the axis has size 3"}},
		"a range that ends before its start":  {a.Index(mlxc.All, mlxc.Range(2, 1)), []string{"index", "no positions 2:1"}},
		"a range that begins before the axis": {a.Index(mlxc.Range(-3, mlxc.End)), []string{"index", "no positions -3:"}},
		"a step of 0":                         {a.Index(mlxc.Range(0, 1).Step(0)), []string{"index", "step is 0"}},
		"a step of a position":                {a.Index(mlxc.At(0).Step(2)), []string{"index", "step"}},
		"more indices than axes":              {a.Index(mlxc.All, mlxc.At(0), mlxc.At(0)), []string{"index", "3 indices, but 2 axes"}},
		"more than one Rest":                  {a.Index(mlxc.Rest, mlxc.Rest), []string{"index", "more than one Rest"}},
		"float ids": {a.Index(mlxc.IDs(b)), []string{
			"index float32(2,3), float32(4)",
			"the ids are float32",
		}},
		"boolean ids of an update": {a.SetAt(scalar, mlxc.IDs(yes)), []string{"set_at", "the ids are bool"}},
		"ids that do not broadcast": {
			a.Index(mlxc.IDs(i), mlxc.IDs(mlxc.FromSlice([]int32{0, 1, 2}))),
			[]string{"index", "(2) and (3) cannot be broadcast"},
		},
		"nil ids": {a.Index(mlxc.IDs(nil)), []string{"index", "the ids", "nil"}},
		"an update of another shape": {a.SetAt(b, mlxc.At(0)), []string{
			"set_at float32(2,3), float32(4)",
			"the selected elements have the shape (3)",
		}},
		"an update of more axes": {
			a.AddAt(a, mlxc.At(0)),
			[]string{"add_at", "the selected elements have the shape (3)"},
		},
		"an update of a freed array": {freed.SetAt(scalar, mlxc.At(0)), []string{"set_at", "freed"}},
		"a freed update":             {a.MulAt(freed, mlxc.At(0)), []string{"mul_at", "operand 2", "freed"}},
		"an invalid array":           {bad.Index(mlxc.At(0)), []string{"add float32(2,3), float32(4)"}},
		"boolean ids of scatter_add": {a.ScatterAdd(yes, a, 0), []string{"scatter_add", "(3,3)"}},
		"boolean ids of put_along_axis": {
			a.PutAlongAxis(yes.Reshape(1, 3), a, 0),
			[]string{"put_along_axis", "the ids are bool"},
		},
		"a window too large":        {a.Gather(arrays{i}, []int{0}, []int{1, 4}), []string{"gather", "window of 4", "axis 1"}},
		"a window of negative size": {a.Gather(arrays{i}, []int{0}, []int{-1, 1}), []string{"gather", "window of -1"}},
		"gather's axis":             {a.Gather(arrays{i}, []int{2}, []int{1, 1}), []string{"gather", "no axis 2"}},
		"windows along one axis twice": {
			a.Gather(arrays{i, i}, []int{0, 0}, []int{1, 1}),
			[]string{"gather", "Repeat axes"},
		},
		"windows without sizes":   {a.Gather(arrays{i}, []int{0}, nil), []string{"gather", "1 ids, 1 axes and 0 sizes"}},
		"a float mask":            {a.MaskedScatter(a, b), []string{"masked_scatter", "boolean"}},
		"a mask of another shape": {a.MaskedScatter(yes, b), []string{"masked_scatter", "mask"}},
		"masked_scatter without updates": {
			b.MaskedScatter(mlxc.OnesLike(b).AsType(mlxc.Bool), none),
			[]string{"masked_scatter", "no elements"},
		},
		"a float start": {a.SliceDynamic(b, []int{0}, []int{1, 1}), []string{"slice_dynamic", "float32"}},
		"a start for other axes": {
			a.SliceDynamic(i, []int{0}, []int{1, 1}),
			[]string{"slice_dynamic", "vector of 1 integers"},
		},
		"a dynamic window too large": {
			a.SliceDynamic(i, []int{0, 1}, []int{3, 1}),
			[]string{"slice_dynamic", "window of 3", "axis 0"},
		},
		"a dynamic axis twice": {a.SliceDynamic(i, []int{0, 0}, []int{1, 1}), []string{"slice_dynamic", "Repeat axes"}},
		"a dynamic update too large": {
			a.SliceUpdateDynamic(mlxc.Ones(mlxc.Float32, 1, 4), i, []int{0, 1}),
			[]string{"slice_update_dynamic", "window of 4"},
		},
		"a dynamic update of more axes": {
			a.SliceUpdateDynamic(mlxc.Ones(mlxc.Float32, 1, 1, 1), i, []int{0, 1}),
			[]string{"slice_update_dynamic", "3 axes, but the array has 2"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			err := c.got.Err()
			require.Error(t, err)
			for _, part := range c.parts {
				require.ErrorContains(t, err, part)
			}
			require.NotContains(t, err.Error(), ".cpp")
			require.Equal(t, []float32{2, 4, 6, 8}, floats(t, b.Add(b)))
		})
	}
	// MLX reports this error only at evaluation.
	_, err := mlxc.ToSlice[float32](a.MaskedScatter(mlxc.OnesLike(a).AsType(mlxc.Bool), b))
	require.ErrorContains(t, err, "enough elements")
}
