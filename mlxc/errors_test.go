package mlxc_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/mlxc"
)

// Wrong calls, and the required parts of their errors. After each case, the library still works.
func TestWrongCalls(t *testing.T) {
	a := mlxc.FromSlice([]float32{1, 2, 3, 4, 5, 6}, 2, 3)
	b := mlxc.FromSlice([]float32{1, 2, 3, 4})
	freed := mlxc.FromSlice([]float32{1})
	freed.Free()
	freed.Free()
	var none *mlxc.Array
	toSlice := func(a *mlxc.Array) error { _, err := mlxc.ToSlice[float32](a); return err }
	for _, c := range []struct {
		name  string
		err   error
		parts []string
	}{
		{"shapes that do not broadcast", a.Add(b).Err(), []string{"add", "float32(2,3)", "float32(4)", "broadcast"}},
		{"the first error is passed on", a.Add(b).Exp().Sum().Err(), []string{"add", "float32(4)"}},
		{"reading an invalid array", toSlice(a.Add(b)), []string{"ToSlice", "add"}},
		{"evaluating an invalid array", mlxc.Eval(a, a.Add(b)), []string{"add"}},
		{"matmul", a.MatMul(a).Err(), []string{"matmul", "float32(2,3)"}},
		{"reshape", a.Reshape(4).Err(), []string{"reshape", "(2,3)"}},
		{"transpose", a.Transpose(0, 2).Err(), []string{"transpose"}},
		{"sum's axis", a.Sum(2).Err(), []string{"sum", "axis"}},
		{"slice lists", a.Slice([]int{0}, []int{1}, nil).Err(), []string{"slice", "1, 1 and 1 entries: they must have 2"}},
		{"slice stride", a.Slice([]int{0, 0}, []int{1, 1}, []int{1, 0}).Err(), []string{"stride is 0"}},
		{
			"dtype of a read", func() error { _, err := mlxc.ToSlice[int32](a); return err }(),
			[]string{"ToSlice", "float32(2,3)", "int32", "AsType"},
		},
		{
			"Item of several elements", func() error { _, err := mlxc.Item[float32](a); return err }(),
			[]string{"Item", "exactly one"},
		},
		{"invalid dtype", a.AsType(mlxc.Invalid).Err(), []string{"astype", "dtype"}},
		{
			"slice and shape differ", mlxc.FromSlice([]float32{1, 2}, 3).Err(),
			[]string{"FromSlice", "(3)", "3 elements, the slice has 2"},
		},
		{"negative axis", mlxc.Zeros(mlxc.Float32, 2, -1).Err(), []string{"negative axis"}},
		{"axis too large", mlxc.Zeros(mlxc.Float32, 1<<31).Err(), []string{"2³¹−1"}},
		{"size overflows", mlxc.Zeros(mlxc.Float32, 1<<30, 1<<30, 1<<10).Err(), []string{"address space"}},
		{
			"size overflows in FromSlice", mlxc.FromSlice([]int8{}, math.MaxInt32, math.MaxInt32, math.MaxInt32).Err(),
			[]string{"address space"},
		},
		{"freed", freed.Add(a).Err(), []string{"add", "freed"}},
		{"freed read", toSlice(freed), []string{"freed"}},
		{"nil", none.Add(a).Err(), []string{"add", "nil"}},
		{"nil operand", a.Add(nil).Err(), []string{"add", "nil"}},
		{"nil evaluated", mlxc.Eval(nil), []string{"Eval", "nil"}},
		{"rms_norm of a scalar", mlxc.RMSNorm(mlxc.Scalar[float32](1), nil, 1e-5).Err(), []string{"rms_norm", "float32()"}},
		{"rms_norm's weight", mlxc.RMSNorm(a, b, 1e-5).Err(), []string{"rms_norm", "float32(2,3), float32(4)"}},
		{"concatenate without arrays", mlxc.Concatenate(0).Err(), []string{"concatenate"}},
		{"normal random numbers of an integer dtype", mlxc.RandomNormal(mlxc.RandomKey(1), mlxc.Int32, 3).Err(), []string{"random_normal"}},
		{"an invalid random key", mlxc.RandomNormal(a, mlxc.Float32, 3).Err(), []string{"random_normal"}},
		{"cotangents missing", func() error {
			_, _, err := mlxc.VJP(func(x arrays) arrays { return x }, arrays{a}, nil)
			return err
		}(), []string{"VJP", "cotangent"}},
		{"cotangent's shape", func() error {
			_, _, err := mlxc.VJP(func(x arrays) arrays { return x }, arrays{a}, arrays{b})
			return err
		}(), []string{"VJP", "cotangent is float32(4)"}},
		{
			"VJP of a nil function", func() error { _, _, err := mlxc.VJP(nil, arrays{a}, arrays{a}); return err }(),
			[]string{"VJP", "nil"},
		},
		{"an axis beyond 32 bits", a.BroadcastTo(1 << 40).Err(), []string{"broadcast_to", "2³¹−1"}},
		{"a broadcast that overflows", a.BroadcastTo(1<<30, 1<<30, 1<<30).Err(), []string{"broadcast_to", "address space"}},
		{"a reduction axis beyond 32 bits", a.Sum(1 << 40).Err(), []string{"sum", "32 bits"}},
		{
			"a concatenation axis beyond 32 bits", mlxc.Concatenate(1<<32, a, a).Err(),
			[]string{"concatenate", "32 bits"},
		},
		{
			"an invalid device", func() error { _, err := mlxc.NewStream(mlxc.Device(1 << 40)); return err }(),
			[]string{"NewStream"},
		},
		{"a freed second operand", a.Add(freed).Err(), []string{"add", "float32(2,3)", "operand 2"}},
		{
			"Trace of a nil function", func() error { _, err := mlxc.Trace(nil, arrays{a}); return err }(),
			[]string{"Trace", "nil"},
		},
		{"softmax's axis", a.Softmax(2).Err(), []string{"softmax", "float32(2,3)", "Invalid axis 2"}},
		{"sort's axis", a.Sort(-3).Err(), []string{"sort", "Axis -3"}},
		{"argsort's axis beyond 32 bits", a.ArgSort(1 << 40).Err(), []string{"argsort", "32 bits"}},
		{"argmax of an empty axis", mlxc.Zeros(mlxc.Float32, 0).ArgMax(0).Err(), []string{"argmax", "zero size"}},
		{"float ids", a.Take(a, 0).Err(), []string{
			"take", "float32(2,3), float32(2,3)",
			"must be integers",
		}},
		{
			"float ids along an axis", a.TakeAlongAxis(a, 1).Err(),
			[]string{"take_along_axis", "the ids are float32"},
		},
		{
			"float ids to scatter", a.ScatterAddAlongAxis(a, a, 1).Err(),
			[]string{"scatter_add_axis", "the ids are float32"},
		},
		{
			"ids along an empty axis", mlxc.Zeros(mlxc.Float32, 2, 0).TakeAlongAxis(mlxc.Zeros(mlxc.Int32, 2, 1), 1).Err(),
			[]string{"the axis has size 0"},
		},
		{
			"updates of another shape", a.ScatterAdd(mlxc.FromSlice([]int32{0}), a, 0).Err(),
			[]string{"scatter_add", "float32(2,3), int32(1), float32(2,3)", "along axis 0, (1,3)"},
		},
		{"scatter's axis", a.ScatterAdd(mlxc.FromSlice([]int32{0}), a, 2).Err(), []string{"scatter_add", "no axis 2"}},
		{
			"an update of another shape", a.SliceUpdate(b, []int{0, 0}, []int{2, 2}, nil).Err(),
			[]string{"slice_update", "float32(2,3), float32(4)", "broadcast"},
		},
		{
			"slice_update's lists", a.SliceUpdate(b, []int{0}, []int{1}, nil).Err(),
			[]string{"slice_update", "1, 1 and 1 entries: they must have 2"},
		},
		{"a triangle of a vector", b.Tril(0).Err(), []string{"tril", "2-D"}},
		{"stacking different shapes", mlxc.Stack(0, a, b).Err(), []string{
			"stack", "float32(2,3), float32(4)",
			"same shape",
		}},
		{"axes in the wrong order", a.Flatten(1, 0).Err(), []string{"flatten"}},
		{"swapaxes' axis", a.SwapAxes(0, 2).Err(), []string{"swapaxes", "axis 2"}},
		{"a negative number of repetitions", a.Repeat(-1, 0).Err(), []string{"repeat", "-1 repetitions"}},
		{"repeat's axis", a.Repeat(1, 2).Err(), []string{"repeat", "no axis 2"}},
		{"a repetition that overflows", a.Repeat(math.MaxInt32, 0).Err(), []string{"repeat", "2³¹−1"}},
		{
			"a tiling that overflows", mlxc.Ones(mlxc.Float32, 1, 1, 1).Tile(1<<30, 1<<30, 1<<30).Err(),
			[]string{"tile", "address space"},
		},
		{"a negative number of tiles", a.Tile(-1).Err(), []string{"tile", "-1 repetitions"}},
		{
			"floor_divide of shapes that do not broadcast", a.AsType(mlxc.Int32).FloorDivide(b.AsType(mlxc.Int32)).Err(),
			[]string{"floor_divide", "int32(2,3), int32(4)", "broadcast"},
		},
		{"a text with a percent sign", mlxc.NewError("op %s", a.Add(b).Err(), a), []string{"op %s"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			require.Error(t, c.err)
			for _, p := range c.parts {
				require.ErrorContains(t, c.err, p)
			}
			require.NotContains(t, c.err.Error(), ".cpp")
			require.Equal(t, []float32{2, 4, 6, 8}, floats(t, b.Add(b)))
		})
	}
}

func TestMethodsOfAnInvalidArrayReturnItsError(t *testing.T) {
	bad := mlxc.FromSlice([]float32{1, 2}).Add(mlxc.FromSlice([]float32{1, 2, 3}))
	require.Nil(t, bad.Shape())
	require.Zero(t, bad.NDim())
	require.Zero(t, bad.Dim(0))
	require.Zero(t, bad.Size())
	require.Zero(t, bad.NBytes())
	require.Equal(t, mlxc.Invalid, bad.DType())
	require.Contains(t, bad.String(), "invalid")
	var e *mlxc.Error
	require.ErrorAs(t, bad.Err(), &e)
	require.Equal(t, "add", e.Op)
	require.Equal(t, [][]int{{2}, {3}}, e.Shapes)
	bad.Free()
	require.Error(t, bad.Err())
}

func TestDimOfAValidArray(t *testing.T) {
	a := mlxc.Zeros(mlxc.Float16, 2, 3)
	require.Equal(t, []int{2, 3, 3, 2, 0, 0}, []int{a.Dim(0), a.Dim(1), a.Dim(-1), a.Dim(-2), a.Dim(2), a.Dim(-3)})
	require.Equal(t, 12, a.NBytes())
	require.Equal(t, []int{}, mlxc.Scalar(true).Shape())
}

func TestVariadicArgumentsAreNotWrittenTo(t *testing.T) {
	buffer := []int{7, 8, 9}
	a := mlxc.Zeros(mlxc.Float32, 1, 2)
	_ = a.Sum(buffer[:0]...)
	_ = a.Transpose(buffer[:0]...)
	_ = a.Squeeze(buffer[:0]...)
	require.Equal(t, []int{7, 8, 9}, buffer)
}

// A caller may build an Error with fewer dtypes than shapes.
func TestErrorWithFewerDTypesThanShapes(t *testing.T) {
	e := &mlxc.Error{Op: "x", Shapes: [][]int{{1}, {2, 3}}, DTypes: []mlxc.DType{mlxc.Int8}, Err: mlxc.ErrNil}
	require.ErrorContains(t, e, "x int8(1), (invalid): ")
}
