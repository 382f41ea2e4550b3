package mlxc_test

import (
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/internal/skip"
	"github.com/mlxgrad/mlxgrad/internal/testdevice"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// An idCase applies f to ids along an axis of size 5.
type idCase struct {
	f    func(x, ids *mlxc.Array) *mlxc.Array
	low  int // the least allowed id of a signed dtype
	high int // the greatest allowed id
}

func idCases() map[string]idCase {
	two := mlxc.FromSlice([]float32{10, 20}, 2, 1)
	update := func(f func(a, update *mlxc.Array, at ...mlxc.Index) *mlxc.Array) func(x, ids *mlxc.Array) *mlxc.Array {
		return func(x, ids *mlxc.Array) *mlxc.Array { return f(x, two, mlxc.IDs(ids)) }
	}
	along := func(ids *mlxc.Array) *mlxc.Array {
		column := ids.ExpandDims(1)
		if ids.IsReady() {
			_ = mlxc.Eval(column)
		}
		return column
	}
	return map[string]idCase{
		"take":      {f: func(x, ids *mlxc.Array) *mlxc.Array { return x.Take(ids, 0) }, low: -5, high: 4},
		"take axis": {f: func(x, ids *mlxc.Array) *mlxc.Array { return x.Transpose().Take(ids, -1) }, low: -5, high: 4},
		"take_along_axis": {f: func(x, ids *mlxc.Array) *mlxc.Array {
			return x.TakeAlongAxis(along(ids), 0)
		}, low: -5, high: 4},
		"index": {f: func(x, ids *mlxc.Array) *mlxc.Array { return x.Index(mlxc.IDs(ids)) }, low: -5, high: 4},
		"index twice": {f: func(x, ids *mlxc.Array) *mlxc.Array {
			return x.Index(mlxc.IDs(ids), mlxc.IDs(mlxc.FromSlice([]uint8{2})))
		}, low: -5, high: 4},
		"gather": {f: func(x, ids *mlxc.Array) *mlxc.Array {
			return x.Gather(arrays{ids}, []int{0}, []int{1, 4})
		}, low: -5, high: 4},
		"set_at":     {f: update((*mlxc.Array).SetAt), low: -5, high: 4},
		"add_at":     {f: update((*mlxc.Array).AddAt), low: -5, high: 4},
		"mul_at":     {f: update((*mlxc.Array).MulAt), low: -5, high: 4},
		"maximum_at": {f: update((*mlxc.Array).MaximumAt), low: -5, high: 4},
		"minimum_at": {f: update((*mlxc.Array).MinimumAt), low: -5, high: 4},
		"scatter_add": {f: func(x, ids *mlxc.Array) *mlxc.Array {
			return x.ScatterAdd(ids, two.BroadcastTo(2, 4), 0)
		}, low: -5, high: 4},
		"scatter_add_axis": {f: func(x, ids *mlxc.Array) *mlxc.Array {
			return x.ScatterAddAlongAxis(along(ids), two, 0)
		}, low: -5, high: 4},
		"put_along_axis": {f: func(x, ids *mlxc.Array) *mlxc.Array {
			return x.PutAlongAxis(along(ids), two, 0)
		}, low: -5, high: 4},
		"gather_mm": {f: func(x, ids *mlxc.Array) *mlxc.Array {
			return x.Reshape(5, 2, 2).GatherMM(mlxc.Ones(mlxc.Float32, 2, 2), mlxc.MatMulIDs{Left: ids})
		}, high: 4},
		"gather_qmm": {f: func(x, ids *mlxc.Array) *mlxc.Array {
			w := normal(1, 5, 32, 32).Quantize(mlxc.QuantizeConfig{GroupSize: 32, Bits: 8})
			return normal(2, 1, 32).GatherQMM(w, mlxc.MatMulIDs{Right: ids}, true)
		}, high: 4},
		"cross_entropy": {f: func(x, ids *mlxc.Array) *mlxc.Array {
			return mlxc.CrossEntropy(x.Transpose().Index(mlxc.Range(0, 2)), ids)
		}, high: 4},
		"segmented_mm": {f: func(x, ids *mlxc.Array) *mlxc.Array {
			return x.Transpose().SegmentedMM(x, ids)
		}, high: 5},
	}
}

// lazily returns equal ids that are not computed yet.
func lazily(ids *mlxc.Array) *mlxc.Array { return ids.Add(mlxc.Zeros(ids.DType())) }

func clampID(id, low, high int) int { return min(max(id, low), high) }

func TestIDsOutOfRange(t *testing.T) {
	testdevice.CPUOnly(t, "reads computed ids, which a CUDA device has in its own memory")
	x := counting(5, 4)
	for name, c := range idCases() {
		t.Run(name, func(t *testing.T) {
			for _, d := range []mlxc.DType{mlxc.Int8, mlxc.Int32, mlxc.Int64, mlxc.Uint8, mlxc.Uint32, mlxc.Uint64} {
				low := c.low
				signed := d >= mlxc.Int8
				if !signed {
					low = 0
				}
				pair := func(id int) *mlxc.Array { return mlxc.FromSlice([]int64{0, int64(id)}).AsType(d) }
				for _, id := range []int{low, 1, c.high, c.high + 1, 100, -1, c.low - 1, -100} {
					if id < 0 && !signed {
						continue
					}
					known := pair(id)
					require.NoError(t, mlxc.Eval(known))
					want := c.f(x, pair(clampID(id, low, c.high)))
					require.NoError(t, mlxc.Eval(want), id)
					got := c.f(x, known)
					if id < low || id > c.high {
						require.ErrorContains(t, got.Err(), fmt.Sprintf("is %d: it must be in %d … %d", id, low,
							c.high))
					} else {
						require.Equal(t, floats(t, want), floats(t, got))
					}
					require.Equal(t, floats(t, want), floats(t, c.f(x, lazily(pair(id)))), "%v %d", d, id)
				}
			}
		})
	}
}

// A window of 2 begins at most 2 positions before the end.
func TestWindowsOutOfRange(t *testing.T) {
	testdevice.CPUOnly(t, "reads computed ids, which a CUDA device has in its own memory")
	x := counting(5)
	for id, begin := range map[int]int{0: 0, 3: 3, 4: 3, 99: 3, -2: 3, -5: 0, -1: 3, -6: 0, -99: 0} {
		for _, d := range []mlxc.DType{mlxc.Int8, mlxc.Int32} {
			ids := mlxc.FromSlice([]int32{int32(id)}).AsType(d)
			want := []float32{float32(begin), float32(begin + 1)}
			require.Equal(t, want, floats(t, x.Gather(arrays{lazily(ids)}, []int{0}, []int{2})), id)
			require.NoError(t, mlxc.Eval(ids))
			known := x.Gather(arrays{ids}, []int{0}, []int{2})
			if id >= -5 && id <= -2 || id >= 0 && id <= 3 {
				require.Equal(t, want, floats(t, known), id)
			} else {
				require.ErrorContains(t, known.Err(), fmt.Sprintf("is %d: it must be in 0 … 3 or -5 … -2", id))
			}
		}
	}
}

// The error names the position of the id in the ids, even if the ids have several axes and are not row-major.
func TestIDsOutOfRangeNameTheirPosition(t *testing.T) {
	testdevice.CPUOnly(t, "reads computed ids, which a CUDA device has in its own memory")
	x := counting(5, 4)
	ids := mlxc.FromSlice([]int32{0, 1, 2, 3, 4, 9}, 3, 2).Transpose()
	require.NoError(t, mlxc.Eval(ids))
	require.ErrorContains(t, x.Take(ids, 0).Err(), "the id at [1 2] is 9")
	spread := mlxc.FromSlice([]uint64{1, 1 << 63}, 2, 1).BroadcastTo(2, 3)
	require.NoError(t, mlxc.Eval(spread))
	require.ErrorContains(t, x.Take(spread, 1).Err(), "the id at [1 0] is 9223372036854775808: it must be in 0 … 3")
	part := mlxc.FromSlice([]int32{9, 1, 9, 2}).Index(mlxc.Range(1, mlxc.End).Step(2))
	require.NoError(t, mlxc.Eval(part))
	require.Equal(t, floats(t, x.Index(mlxc.Range(1, 3))), floats(t, x.Take(part, 0)))
}

// If every id of the dtype is a position of the axis, ids need no clamping.
func TestIDsOfFewBits(t *testing.T) {
	testdevice.CPUOnly(t, "reads computed ids, which a CUDA device has in its own memory")
	x := counting(300)
	require.Equal(t, []float32{255, 7}, floats(t, x.Take(lazily(mlxc.FromSlice([]uint8{255, 7})), 0)))
	require.Equal(t, []float32{172, 127}, floats(t, x.Take(lazily(mlxc.FromSlice([]int8{-128, 127})), 0)))
	require.Equal(t, []float32{172, 173}, floats(t, x.Gather(arrays{lazily(mlxc.FromSlice([]int8{-128}))}, []int{0},
		[]int{2})))
}

// The gradient of a clamped id flows to the clamped position.
func TestIDsOutOfRangeInTransforms(t *testing.T) {
	testdevice.CPUOnly(t, "reads computed ids, which a CUDA device has in its own memory")
	x := counting(5, 1)
	take := func(a arrays) arrays { return arrays{a[0].Take(a[1], 0)} }
	wild := func() *mlxc.Array { return lazily(mlxc.FromSlice([]int32{1, 99, -99})) }
	ct := mlxc.FromSlice([]float32{1, 2, 4}, 3, 1)

	out, grads, err := mlxc.VJP(func(a arrays) arrays { return take(arrays{a[0], wild()}) }, arrays{x}, arrays{ct})
	require.NoError(t, err)
	require.Equal(t, []float32{1, 4, 0}, floats(t, out[0]))
	require.Equal(t, []float32{4, 1, 0, 0, 2}, floats(t, grads[0]))

	_, grads, err = mlxc.VJP(take, arrays{x, wild()}, arrays{ct})
	require.NoError(t, err)
	require.Equal(t, []float32{4, 1, 0, 0, 2}, floats(t, grads[0]))

	_, _, err = mlxc.VJP(take, arrays{x, mlxc.FromSlice([]int32{1, 99, 0})}, arrays{ct})
	require.ErrorContains(t, err, "the id at [1] is 99")

	for range 2 { // traced, and again
		out, err = mlxc.Compile(take).Call(x, mlxc.FromSlice([]int32{1, 99, -99}))
		require.NoError(t, err)
		require.Equal(t, []float32{1, 4, 0}, floats(t, out[0]))
	}

	batch := mlxc.FromSlice([]int32{0, 99, -99, 3}, 2, 2)
	for _, ids := range []*mlxc.Array{batch, lazily(batch)} {
		got := mlxc.Vmap(take, []int{mlxc.Unmapped, 0}, nil)(arrays{x, ids})
		require.Equal(t, []float32{0, 4, 0, 3}, floats(t, got[0]))
	}
	for name, f := range map[string]func(x, u, ids *mlxc.Array) *mlxc.Array{
		"set_at": func(x, u, ids *mlxc.Array) *mlxc.Array { return x.SetAt(u, mlxc.IDs(ids)) },
		"add_at": func(x, u, ids *mlxc.Array) *mlxc.Array { return x.AddAt(u, mlxc.IDs(ids)) },
	} {
		update := func(a arrays) arrays { return arrays{f(a[0], a[1], a[2])} }
		args := arrays{x, mlxc.FromSlice([]float32{7, 8, 9}, 3, 1), wild()}
		want := floats(t, f(x, args[1], mlxc.FromSlice([]int32{1, 4, 0})))
		_, grads, err := mlxc.VJP(update, args, arrays{mlxc.Ones(mlxc.Float32, 5, 1)})
		require.NoError(t, err, name)
		require.Equal(t, []float32{1, 1, 1}, floats(t, grads[1]), name)
		out, err := mlxc.Compile(update).Call(args...)
		require.NoError(t, err, name)
		require.Equal(t, want, floats(t, out[0]), name)
	}
}

func TestFindOutside(t *testing.T) {
	ids := mlxc.FromSlice([]int32{0, 4, -7, 9, 5, -2}, 2, 3)
	for _, c := range []struct{ low, high, except, position, value int }{
		{0, 4, 0, 2, -7},
		{0, 4, -7, 3, 9},
		{math.MinInt32, 4, -1, 3, 9},
		{math.MinInt32, 4, 9, 4, 5},
		{-7, 9, 0, -1, 0},
		{0, -1, math.MinInt, 0, 0}, // an empty range
	} {
		position, value := ids.FindOutside(c.low, c.high, c.except)
		require.Equal(t, []int{c.position, c.value}, []int{position, value}, "%+v", c)
	}
	position, value := mlxc.FromSlice([]uint32{3, math.MaxUint32}).FindOutside(0, 3, 0)
	require.Equal(t, []int{1, math.MaxUint32}, []int{position, value})
	turned := ids.Transpose()
	position, _ = turned.FindOutside(0, 4, -7)
	require.Equal(t, -1, position, "not computed")
	require.NoError(t, mlxc.Eval(turned))
	if mlxc.CurrentBackend() != mlxc.BackendCUDA {
		position, value = turned.FindOutside(0, 4, -7)
		require.Equal(t, []int{1, 9}, []int{position, value}, "by row")
	}
	position, _ = mlxc.InvalidArray(errors.New("none")).FindOutside(0, 4, 0)
	require.Equal(t, -1, position)
}

// Elements never change, so ids that are all valid are read once for each range.
func TestValidIDsAreReadOnce(t *testing.T) {
	if mlxc.CurrentBackend() == mlxc.BackendCUDA {
		skip.Platform(t, "the elements of FromSliceNoCopy are not in host memory")
	}
	elements := []int32{0, 4, 2}
	ids := mlxc.FromSliceNoCopy(elements)
	find := func(high int) int {
		position, _ := ids.FindOutside(0, high, 0)
		return position
	}
	require.Equal(t, -1, find(4))
	elements[1] = 5 // forbidden, and not seen
	require.Equal(t, -1, find(4))
	require.Equal(t, 1, find(3))
	elements[1] = 3
	require.Equal(t, -1, find(3), "after an id out of range")
}

func TestCheckOnce(t *testing.T) {
	calls := 0
	check := func(a *mlxc.Array, key any, result error) error {
		return a.CheckOnce(key, func() error {
			calls++
			return result
		})
	}
	failed, a := errors.New("failed"), mlxc.FromSlice([]float32{1})
	for _, c := range []struct {
		a      *mlxc.Array
		key    any
		result error
		calls  int
	}{
		{a, 1, failed, 1},
		{a, 1, nil, 2},
		{a, 1, nil, 2},
		{a, "1", failed, 3},
		{a, 1, failed, 3}, // not called: it would return nil
		{mlxc.FromSlice([]float32{1}), 1, nil, 4},
		{mlxc.InvalidArray(failed), 1, nil, 5},
		{mlxc.InvalidArray(failed), 1, nil, 6},
	} {
		err := check(c.a, c.key, c.result)
		require.Equal(t, c.calls, calls, "%+v", c)
		if c.result == nil {
			require.NoError(t, err)
		}
	}
	require.ErrorIs(t, check(a, 2, failed), failed)
}
