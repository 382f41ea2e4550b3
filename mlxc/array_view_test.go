package mlxc_test

import (
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/internal/skip"
	"github.com/mlxgrad/mlxgrad/internal/testdevice"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

func counted(n int) []float32 {
	v := make([]float32, n)
	for i := range v {
		v[i] = float32(i)
	}
	return v
}

func TestFromSliceNoCopyUsesTheMemory(t *testing.T) {
	testdevice.CPUOnly(t, "computes float64, or an operation that MLX has for CPUs only")
	const n = 1 << 20
	data := counted(n)
	before := mlxc.ActiveMemory()
	x := mlxc.FromSliceNoCopy(data, 2, n/2)
	require.NoError(t, x.Err())
	require.Equal(t, []int{2, n / 2}, x.Shape())
	if !mlxc.GPU.Available() {
		require.Less(t, mlxc.ActiveMemory()-before, n, "there is no copy")
	}
	require.Equal(t, data, floats(t, x))
	require.Equal(t, []float32{n/2 - 1, n - 1}, floats(t, x.Max(1)))
	require.Equal(t, []float32{3, n/2 + 3}, floats(t, x.Slice([]int{0, 3}, []int{2, 4}, nil)))

	// Unaligned parts of slices, other dtypes, and empty slices.
	require.Equal(t, []float32{7, 8, 9}, floats(t, mlxc.FromSliceNoCopy(data[7:10])))
	require.Equal(t, []complex64{2i, 3}, read[complex64](t, mlxc.FromSliceNoCopy([]complex64{1, 2i, 3}[1:])))
	require.Equal(t, []uint8{2, 3}, read[uint8](t, mlxc.FromSliceNoCopy([]uint8{1, 2, 3}[1:])))
	require.Equal(t, []bool{true}, read[bool](t, mlxc.FromSliceNoCopy([]bool{true})))
	require.Equal(t, []float64{0.5, 1.5}, read[float64](t,
		mlxc.FromSliceNoCopy([]float64{0.5, 0.5}).Add(mlxc.FromSliceNoCopy([]float64{0, 1}))))
	require.Equal(t, []int{0, 3}, mlxc.FromSliceNoCopy([]float32{}, 0, 3).Shape())
	for _, err := range []error{
		mlxc.FromSliceNoCopy(data, 3).Err(), mlxc.FromSliceNoCopy(data, -1).Err(),
		mlxc.FromSliceNoCopy(data[:1], 1<<40).Err(),
	} {
		require.ErrorContains(t, err, "FromSliceNoCopy float32")
	}
}

// MLX reuses the buffer of an operand without other users. It must not reuse the buffer of a view.
func TestViewsAreNotWrittenTo(t *testing.T) {
	want, data := counted(1000), counted(1000)
	for _, f := range []func(x *mlxc.Array) *mlxc.Array{
		func(x *mlxc.Array) *mlxc.Array { return x.AddScalar(1) },
		(*mlxc.Array).Exp,
		func(x *mlxc.Array) *mlxc.Array { return x.Softmax(-1) },
		func(x *mlxc.Array) *mlxc.Array { return x.Sort(0) },
		func(x *mlxc.Array) *mlxc.Array { return x.Reshape(10, 100).AddScalar(1) },
		func(x *mlxc.Array) *mlxc.Array { return x.Slice([]int{0}, []int{500}, nil).Neg() },
		func(x *mlxc.Array) *mlxc.Array {
			return x.SliceUpdate(mlxc.Ones(mlxc.Float32, 2), []int{0}, []int{2}, nil)
		},
		func(x *mlxc.Array) *mlxc.Array { return x.CumSum(0) },
	} {
		var y *mlxc.Array
		mlxc.WithScope(func() { y = f(mlxc.FromSliceNoCopy(data)).Keep() }) // the view's handle is gone
		require.NoError(t, mlxc.Eval(y))
		// In two steps: the intermediate array is computed and shares the view's memory.
		mlxc.WithScope(func() {
			part := mlxc.FromSliceNoCopy(data).Reshape(100, 10)
			require.NoError(t, mlxc.Eval(part))
			y = part.AddScalar(1).Keep()
		})
		require.NoError(t, mlxc.Eval(y))
		require.Equal(t, want, data)
	}
	c := mlxc.Compile(func(a arrays) arrays { return arrays{a[0].Exp().AddScalar(1)} })
	for range 2 {
		mlxc.WithScope(func() {
			out, err := c.Call(mlxc.FromSliceNoCopy(data))
			require.NoError(t, err)
			require.NoError(t, mlxc.Eval(out...))
		})
	}
	require.Equal(t, want, data)
}

// The memory is pinned exactly as long as an array needs it.
func TestViewKeepsItsMemory(t *testing.T) {
	if mlxc.GPU.Available() {
		skip.Platform(t, "with a GPU, MLX copies memory that does not begin at a page, and releases the original")
	}
	collected := make(chan bool, 1)
	last := func() *mlxc.Array {
		data := counted(1 << 16)
		runtime.AddCleanup(&data[0], func(c chan bool) { c <- true }, collected)
		x := mlxc.FromSliceNoCopy(data)
		defer x.Free()
		return x.Max()
	}()
	for range 5 {
		runtime.GC()
		require.NoError(t, mlxc.Eval(mlxc.Ones(mlxc.Float32, 1)))
		require.Empty(t, collected)
	}
	require.Equal(t, []float32{1<<16 - 1}, floats(t, last))
	require.Eventually(t, func() bool {
		runtime.GC()
		return mlxc.Eval(mlxc.Ones(mlxc.Float32, 1)) == nil && len(collected) == 1
	}, 10*time.Second, time.Millisecond, "the memory is still kept")
}

// A program that only reads results, and never calls Eval, also releases pinned memory.
func TestReadingReleasesViews(t *testing.T) {
	const size, turns = 1 << 18, 100 // size in bytes
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for range turns {
		mlxc.WithScope(func() { floats(t, mlxc.FromSliceNoCopy(counted(size/4)).Sum()) })
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	require.Less(t, int(after.HeapAlloc)-int(before.HeapAlloc), turns*size/4)
}

func TestViewsOnManyGoroutines(t *testing.T) {
	data := counted(4096)
	var wg sync.WaitGroup
	errs := make(chan error, 64*20)
	for range 64 {
		wg.Go(func() {
			for i := range 20 {
				mlxc.WithScope(func() {
					v, err := mlxc.ToSlice[float32](mlxc.FromSliceNoCopy(data[i:]).AddScalar(1))
					if err == nil && v[1] != float32(i+2) {
						err = fmt.Errorf("%v, want %d", v[1], i+2)
					}
					if err != nil {
						errs <- err
					}
				})
			}
		})
	}
	wg.Wait()
	close(errs)
	require.NoError(t, <-errs)
}

func TestStrides(t *testing.T) {
	x := counting(2, 3, 4)
	for _, c := range []struct {
		a    *mlxc.Array
		want []int
	}{
		{x, []int{12, 4, 1}},
		{x.Transpose(2, 0, 1), []int{1, 12, 4}},
		{x.Transpose(2, 0, 1).Contiguous(), []int{6, 3, 1}},
		{counting(3).BroadcastTo(2, 3), []int{0, 1}},
		{mlxc.Scalar[float32](1), []int{}},
	} {
		got, err := c.a.Strides()
		require.NoError(t, err)
		require.Equal(t, c.want, got)
	}
	_, err := x.Add(counting(7)).Strides()
	require.ErrorContains(t, err, "broadcast")
}

func TestRows(t *testing.T) {
	x := counting(3, 2)
	var got [][]float32
	for i, row := range x.Rows() {
		require.Len(t, got, i)
		require.Equal(t, []int{2}, row.Shape())
		got = append(got, floats(t, row))
		if i == 1 {
			break
		}
	}
	require.Equal(t, [][]float32{{0, 1}, {2, 3}}, got)
	for range mlxc.Zeros(mlxc.Float32, 0, 2).Rows() {
		t.Fatal("there are no rows")
	}
	for want, a := range map[string]*mlxc.Array{
		"no axis 0": mlxc.Scalar[float32](1), "broadcast": x.Add(counting(7)),
		"nil": nil,
	} {
		n := 0
		for _, row := range a.Rows() {
			n++
			require.ErrorContains(t, row.Err(), want)
		}
		require.Equal(t, 1, n)
	}
}

func ExampleFromSliceNoCopy() {
	samples := []float32{1, 2, 3, 4, 5, 6} // such as a file that was mapped into memory
	fmt.Println(mlxc.FromSliceNoCopy(samples, 3, 2).Mean(0))
	// Output: array([3, 4], dtype=float32)
}

func ExampleArray_Rows() {
	for i, row := range mlxc.FromSlice([]int32{1, 2, 3, 4}, 2, 2).Rows() {
		fmt.Println(i, row)
	}
	// Output:
	// 0 array([1, 2], dtype=int32)
	// 1 array([3, 4], dtype=int32)
}
