package mlxc_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/x448/float16"

	"github.com/mlxgrad/mlxgrad/internal/testdevice"
	"github.com/mlxgrad/mlxgrad/mlxc"
	"github.com/mlxgrad/mlxgrad/mlxc/bfloat16"
)

// The fuzz tests begin with the inputs of their f.Add calls. Continuous integration runs 5,000 inputs of each. A longer
// run:
//
//	go test ./mlxc -run '^$' -fuzz '^FuzzShapes$' -fuzztime 5m

// dims makes a shape of at most four axes of at most 5 elements.
func dims(data []byte) []int {
	shape := []int{}
	for _, b := range data[:min(len(data), 4)] {
		shape = append(shape, int(b%6))
	}
	return shape
}

func sizeOf(shape []int) int {
	n := 1
	for _, d := range shape {
		n *= d
	}
	return n
}

// positions gives the indices of every element of a shape, in row-major order.
func positions(shape []int) [][]int {
	all := make([][]int, sizeOf(shape))
	for i := range all {
		at := make([]int, len(shape))
		for axis, rest := len(shape)-1, i; axis >= 0; axis-- {
			at[axis] = rest % shape[axis]
			rest /= shape[axis]
		}
		all[i] = at
	}
	return all
}

func offset(shape, at []int) int {
	n := 0
	for axis := range shape {
		n = n*shape[axis] + at[axis]
	}
	return n
}

// FuzzShapes holds slices, broadcasts, gathers, reshapes and the making of arrays
// against the same in Go.
func FuzzShapes(f *testing.F) {
	f.Add([]byte{2, 3, 4}, []byte{0, 1, 2}, int8(1), int8(2), int8(-1), int64(5), uint8(1))
	f.Add([]byte{}, []byte{3}, int8(0), int8(0), int8(0), int64(0), uint8(0))
	f.Add([]byte{5, 0}, []byte{0, 0, 0, 1}, int8(-3), int8(5), int8(2), int64(math.MaxInt64), uint8(255))
	f.Add([]byte{1, 4}, []byte{200, 0, 3}, int8(-8), int8(0), int8(-2), int64(1<<40), uint8(3))
	f.Fuzz(func(t *testing.T, shapeBytes, ids []byte, start, stop, stride int8, long int64, pick uint8) {
		mlxc.WithScope(func() {
			shape := dims(shapeBytes)
			a := counting(shape...)
			require.NoError(t, a.Err())
			axis := 0
			if len(shape) > 0 {
				axis = int(pick) % len(shape)
				checkSlice(t, a, shape, axis, int(start), int(stop), int(stride))
				checkSlice(t, a, shape, axis, int(start), int(long), int(stride))
				checkSlice(t, a, shape, axis, int(long), int(stop), int(stride))
				checkTake(t, a, shape, axis, ids)
			}
			checkBroadcast(t, a, shape, dims(ids))
			checkReshape(t, a, dims(ids))
			checkMaking(t, []int{int(long), int(stop), int(long >> 16)}[:pick%4])
		})
	})
}

func checkSlice(t *testing.T, a *mlxc.Array, shape []int, axis, start, stop, stride int) {
	starts, stops, strides := make([]int, len(shape)), append([]int{}, shape...), make([]int, len(shape))
	for i := range strides {
		strides[i] = 1
	}
	starts[axis], stops[axis], strides[axis] = start, stop, stride
	got := a.Slice(starts, stops, strides)
	if stride == 0 || int64(int32(start)) != int64(start) || int64(int32(stop)) != int64(stop) || int64(int32(stride)) != int64(stride) {
		require.Error(t, got.Err(), "[%d:%d:%d]", start, stop, stride)
		return
	}
	// As Python slices, where a negative bound counts from the end.
	n := shape[axis]
	bound := func(i, low, high int) int {
		if i < 0 {
			i += n
		}
		return min(max(i, low), high)
	}
	var picked []int
	if stride > 0 {
		for i := bound(start, 0, n); i < bound(stop, 0, n); i += stride {
			picked = append(picked, i)
		}
	} else {
		for i := bound(start, -1, n-1); i > bound(stop, -1, n-1); i += stride {
			picked = append(picked, i)
		}
	}
	requirePicked(t, got, shape, axis, picked)
}

// requirePicked checks that got has the picked indices of one axis of counting(shape).
func requirePicked(t *testing.T, got *mlxc.Array, shape []int, axis int, picked []int) {
	require.NoError(t, got.Err())
	wantShape := append([]int{}, shape...)
	wantShape[axis] = len(picked)
	require.Equal(t, wantShape, got.Shape())
	want := []int32{}
	for _, at := range positions(wantShape) {
		at[axis] = picked[at[axis]]
		want = append(want, int32(offset(shape, at)))
	}
	require.Equal(t, want, read[int32](t, got.AsType(mlxc.Int32)))
}

func checkTake(t *testing.T, a *mlxc.Array, shape []int, axis int, ids []byte) {
	if shape[axis] == 0 {
		return // there is nothing to take
	}
	index, picked := []int32{}, []int{}
	for _, b := range ids {
		i := int(b) % shape[axis]
		picked = append(picked, i)
		if b >= 128 {
			i -= shape[axis] // the same, from the end
		}
		index = append(index, int32(i))
	}
	requirePicked(t, a.Take(mlxc.FromSlice(index), axis), shape, axis, picked)
}

func checkBroadcast(t *testing.T, a *mlxc.Array, shape, to []int) {
	fits := len(to) >= len(shape)
	for i := 1; fits && i <= len(shape); i++ {
		from := shape[len(shape)-i]
		fits = from == 1 || from == to[len(to)-i]
	}
	got := a.BroadcastTo(to...)
	if !fits {
		require.Error(t, got.Err(), "%v to %v", shape, to)
		return
	}
	require.NoError(t, got.Err())
	require.Equal(t, to, got.Shape())
	want := []int32{}
	for _, at := range positions(to) {
		at = at[len(to)-len(shape):]
		for axis := range at {
			at[axis] %= shape[axis]
		}
		want = append(want, int32(offset(shape, at)))
	}
	require.Equal(t, want, read[int32](t, got.AsType(mlxc.Int32)))
}

func checkReshape(t *testing.T, a *mlxc.Array, to []int) {
	got := a.Reshape(to...)
	if sizeOf(to) != a.Size() {
		require.Error(t, got.Err(), "%v to %v", a.Shape(), to)
		return
	}
	require.NoError(t, got.Err())
	require.Equal(t, to, got.Shape())
	require.Equal(t, read[int32](t, a.AsType(mlxc.Int32)), read[int32](t, got.AsType(mlxc.Int32)))
}

// checkMaking makes an array of any shape, without computing it.
func checkMaking(t *testing.T, shape []int) {
	n, fits := 1.0, true
	for _, d := range shape {
		fits = fits && d >= 0 && d <= math.MaxInt32
		n *= float64(d)
	}
	got := mlxc.Zeros(mlxc.Float32, shape...)
	if !fits {
		require.Error(t, got.Err(), "%v", shape)
		return
	}
	if got.Err() == nil {
		require.InEpsilon(t, n+1, float64(got.Size())+1, 1e-9)
		require.Less(t, n, math.Pow(2, 47))
	} else {
		require.Greater(t, n, math.Pow(2, 40), "%v: %v", shape, got.Err())
	}
}

// FuzzDTypes holds conversions between dtypes against Go's. What Go and MLX leave to the
// machine, a float beyond the integers' range for instance, is not compared.
func FuzzDTypes(f *testing.F) {
	testdevice.CPUOnly(f, "computes float64, or an operation that MLX has for CPUs only")
	for _, bits := range []uint64{0, 1, 0x7ff0000000000000, 0xfff8000000000001, 0x8000000000000000, 0x3ff0000000000000, 0xc060000000000000, 0x40f86a0000000000, math.MaxUint64} {
		for kind := range uint8(4) {
			f.Add(bits, kind)
		}
	}
	f.Fuzz(func(t *testing.T, bits uint64, kind uint8) {
		mlxc.WithScope(func() {
			switch kind % 4 {
			case 0:
				fromInteger(t, int64(bits))
			case 1:
				fromFloat(t, float64(math.Float32frombits(uint32(bits))), mlxc.FromSlice([]float32{math.Float32frombits(uint32(bits))}))
			case 2:
				h := float16.Frombits(uint16(bits))
				fromFloat(t, float64(h.Float32()), mlxc.FromSlice([]float16.Float16{h}))
			case 3:
				b := bfloat16.FromBits(uint16(bits))
				fromFloat(t, float64(b.Float32()), mlxc.FromSlice([]bfloat16.BFloat16{b}))
			}
		})
	})
}

func one[T mlxc.Element](t *testing.T, a *mlxc.Array, d mlxc.DType) T {
	t.Helper()
	return read[T](t, a.AsType(d))[0]
}

// fromInteger: integers wrap, floats round to the nearest, ties to even.
func fromInteger(t *testing.T, v int64) {
	a := mlxc.FromSlice([]int64{v})
	require.Equal(t, v != 0, one[bool](t, a, mlxc.Bool))
	require.Equal(t, uint8(v), one[uint8](t, a, mlxc.Uint8))
	require.Equal(t, uint16(v), one[uint16](t, a, mlxc.Uint16))
	require.Equal(t, uint32(v), one[uint32](t, a, mlxc.Uint32))
	require.Equal(t, uint64(v), one[uint64](t, a, mlxc.Uint64))
	require.Equal(t, int8(v), one[int8](t, a, mlxc.Int8))
	require.Equal(t, int16(v), one[int16](t, a, mlxc.Int16))
	require.Equal(t, int32(v), one[int32](t, a, mlxc.Int32))
	require.Equal(t, float32(v), one[float32](t, a, mlxc.Float32))
	require.Equal(t, float64(v), one[float64](t, a, mlxc.Float64))
	require.Equal(t, complex(float32(v), 0), one[complex64](t, a, mlxc.Complex64))
	u := mlxc.FromSlice([]uint64{uint64(v)})
	require.Equal(t, v, one[int64](t, u, mlxc.Int64))
	require.Equal(t, float32(uint64(v)), one[float32](t, u, mlxc.Float32))
	require.Equal(t, float64(uint64(v)), one[float64](t, u, mlxc.Float64))
}

func fromFloat(t *testing.T, v float64, a *mlxc.Array) {
	same := func(want, got float64) {
		t.Helper()
		if math.IsNaN(want) {
			require.True(t, math.IsNaN(got), "NaN became %v", got)
			return
		}
		require.Equal(t, math.Float64bits(want), math.Float64bits(got), "%v became %v", v, got)
	}
	same(v, one[float64](t, a, mlxc.Float64))
	same(float64(float32(v)), float64(one[float32](t, a, mlxc.Float32)))
	same(float64(float16.Fromfloat32(float32(v)).Float32()), float64(one[float16.Float16](t, a, mlxc.Float16).Float32()))
	same(float64(bfloat16.FromFloat32(float32(v)).Float32()), float64(one[bfloat16.BFloat16](t, a, mlxc.BFloat16).Float32()))
	require.Equal(t, v != 0, one[bool](t, a, mlxc.Bool))
	// Towards zero, where the integer has room.
	whole := math.Trunc(v)
	if whole >= math.MinInt8 && whole <= math.MaxInt8 {
		require.Equal(t, int8(v), one[int8](t, a, mlxc.Int8))
	}
	if whole >= math.MinInt32 && whole <= math.MaxInt32 {
		require.Equal(t, int32(v), one[int32](t, a, mlxc.Int32))
	}
	if whole >= math.MinInt64 && whole < math.MaxInt64 {
		require.Equal(t, int64(v), one[int64](t, a, mlxc.Int64))
	}
	if whole >= 0 && whole <= math.MaxUint8 {
		require.Equal(t, uint8(v), one[uint8](t, a, mlxc.Uint8))
	}
	if whole >= 0 && whole <= math.MaxUint32 {
		require.Equal(t, uint32(v), one[uint32](t, a, mlxc.Uint32))
	}
}
