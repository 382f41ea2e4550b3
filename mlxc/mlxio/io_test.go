package mlxio_test

import (
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/x448/float16"

	"github.com/mlxgrad/mlxgrad/internal/mlxtest"
	"github.com/mlxgrad/mlxgrad/mlxc"
	"github.com/mlxgrad/mlxgrad/mlxc/bfloat16"
	"github.com/mlxgrad/mlxgrad/mlxc/mlxio"
)

type (
	named  = map[string]*mlxc.Array
	arrays = []*mlxc.Array
)

// oneOfEach returns an array of every dtype, and the elements.
func oneOfEach() (named, map[string]any) {
	values := map[string]any{
		"bool":  []bool{true, false, true, true, false, false},
		"uint8": []uint8{0, 1, 2, 253, 254, 255}, "uint16": []uint16{0, 1, 2, 3, 4, math.MaxUint16},
		"uint32": []uint32{0, 1, 2, 3, 4, math.MaxUint32}, "uint64": []uint64{0, 1, 2, 3, 4, math.MaxUint64},
		"int8": []int8{0, 1, 2, 3, 127, -128}, "int16": []int16{0, 1, 2, 3, math.MaxInt16, math.MinInt16},
		"int32": []int32{0, 1, 2, 3, math.MaxInt32, math.MinInt32}, "int64": []int64{
			0, 1, 2, 3, math.MaxInt64,
			math.MinInt64,
		},
		"float16":  []float16.Float16{0, 1, 0x3c00, 0x7bff, 0x8000, 0xc000},
		"float32":  []float32{0, 1, -2, math.MaxFloat32, math.SmallestNonzeroFloat32, 0.1},
		"float64":  []float64{0, 1, -2, math.MaxFloat64, math.SmallestNonzeroFloat64, 0.1},
		"bfloat16": []bfloat16.BFloat16{0, 1, 0x3f80, 0x7f7f, 0x8000, 0xc000},
		"complex":  []complex64{0, 1, 2i, 3 + 4i, -5, -6i},
	}
	arrays := named{}
	for name, v := range values {
		arrays[name] = arrayOf(v, 2, 3)
	}
	return arrays, values
}

func arrayOf(v any, shape ...int) *mlxc.Array {
	switch v := v.(type) {
	case []bool:
		return mlxc.FromSlice(v, shape...)
	case []uint8:
		return mlxc.FromSlice(v, shape...)
	case []uint16:
		return mlxc.FromSlice(v, shape...)
	case []uint32:
		return mlxc.FromSlice(v, shape...)
	case []uint64:
		return mlxc.FromSlice(v, shape...)
	case []int8:
		return mlxc.FromSlice(v, shape...)
	case []int16:
		return mlxc.FromSlice(v, shape...)
	case []int32:
		return mlxc.FromSlice(v, shape...)
	case []int64:
		return mlxc.FromSlice(v, shape...)
	case []float16.Float16:
		return mlxc.FromSlice(v, shape...)
	case []float32:
		return mlxc.FromSlice(v, shape...)
	case []float64:
		return mlxc.FromSlice(v, shape...)
	case []bfloat16.BFloat16:
		return mlxc.FromSlice(v, shape...)
	case []complex64:
		return mlxc.FromSlice(v, shape...)
	}
	panic("no such slice")
}

func requireElements(t testing.TB, want any, shape []int, a *mlxc.Array) {
	t.Helper()
	require.NoError(t, a.Err())
	require.Equal(t, shape, a.Shape())
	require.Equal(t, want, mlxtest.Elements(t, a))
}

// requireSmallAllocations requires at the end of a test that it allocated little, whatever sizes its files promise.
func requireSmallAllocations(t testing.TB) {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	mlxc.ResetPeakMemory()
	t.Cleanup(func() {
		runtime.ReadMemStats(&after)
		require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(64<<20))
		require.Less(t, mlxc.PeakMemory()-mlxc.ActiveMemory(), 64<<20)
	})
}

func TestMissingFiles(t *testing.T) {
	_, _, err := mlxio.LoadSafetensors(filepath.Join(t.TempDir(), "absent"))
	require.ErrorIs(t, err, fs.ErrNotExist)
	_, err = mlxio.LoadNPY(t.TempDir())
	require.ErrorContains(t, err, "directory")
	_, _, err = mlxio.LoadGGUF("")
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.ErrorIs(t, mlxio.SaveNPY(filepath.Join(t.TempDir(), "absent", "x.npy"), mlxc.Scalar(true)), fs.ErrNotExist)
	_, err = mlxio.ReadNPY(iotest.ErrReader(fs.ErrPermission))
	require.ErrorIs(t, err, fs.ErrPermission)
}

// If a file changes between its opening and the evaluation, the evaluation fails.
func TestFilesModifiedBeforeEvaluation(t *testing.T) {
	save := func(t *testing.T) (path string, a *mlxc.Array) {
		path = filepath.Join(t.TempDir(), "x.safetensors")
		require.NoError(t, mlxio.SaveSafetensors(path, named{"a": mlxc.Ones(mlxc.Float32, 1000)}, nil))
		arrays, _, err := mlxio.LoadSafetensors(path)
		require.NoError(t, err)
		return path, arrays["a"]
	}
	t.Run("removed", func(t *testing.T) {
		path, a := save(t)
		require.NoError(t, os.Remove(path))
		require.Equal(t, []float32{1000}, mlxtest.Read[float32](t, a.Sum()))
	})
	t.Run("replaced by itself", func(t *testing.T) {
		path, a := save(t)
		require.NoError(t, mlxio.SaveSafetensors(path, named{"a": a.AddScalar(1)}, nil))
		require.Equal(t, []float32{1000}, mlxtest.Read[float32](t, a.Sum()))
		arrays, _, err := mlxio.LoadSafetensors(path)
		require.NoError(t, err)
		require.Equal(t, []float32{2000}, mlxtest.Read[float32](t, arrays["a"].Sum()))
	})
	for name, change := range map[string]func(path string) error{
		"truncated": func(path string) error { return os.Truncate(path, 500) },
		"written to": func(path string) error {
			f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
			if err != nil {
				return err
			}
			_, err = f.WriteString("x")
			return cmpErr(err, f.Close())
		},
	} {
		t.Run(name, func(t *testing.T) {
			path, a := save(t)
			sum := a.Sum()
			require.NoError(t, change(path))
			for range 2 { // the error is permanent
				_, err := mlxc.ToSlice[float32](sum)
				require.ErrorContains(t, err, "changed")
				_, err = mlxc.ToSlice[float32](a)
				require.ErrorContains(t, err, "changed")
			}
			require.Equal(t, []float32{3}, mlxtest.Read[float32](t, mlxc.Ones(mlxc.Float32, 3).Sum()),
				"other arrays can be evaluated")
		})
	}
}

// Arrays that were not evaluated are constants of transforms.
func TestLoadedArraysInTransforms(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.npy")
	require.NoError(t, mlxio.SaveNPY(path, mlxc.FromSlice([]float32{2, 3})))
	load := func() *mlxc.Array {
		w, err := mlxio.LoadNPY(path)
		require.NoError(t, err)
		return w
	}
	x, ones := mlxc.FromSlice([]float32{5, 7}), mlxc.Ones(mlxc.Float32, 2)
	w := load()
	f := func(a arrays) arrays { return arrays{a[0].Mul(w)} }
	_, grads, err := mlxc.VJP(f, arrays{x}, arrays{ones})
	require.NoError(t, err)
	require.Equal(t, []float32{2, 3}, mlxtest.Read[float32](t, grads[0]))

	w = load()
	compiled := mlxc.Compile(func(a arrays) arrays { return arrays{f(a)[0].AddScalar(1)} })
	for range 2 {
		out, err := compiled.Call(x)
		require.NoError(t, err)
		require.Equal(t, []float32{11, 22}, mlxtest.Read[float32](t, out[0]))
	}

	w = load()
	rows := mlxc.Vmap(f, nil, nil)(arrays{mlxc.Stack(0, x, ones)})
	require.Equal(t, []float32{10, 21, 2, 3}, mlxtest.Read[float32](t, rows[0]))

	w = load()
	file := filepath.Join(t.TempDir(), "f.mlxfn")
	require.NoError(t, mlxc.Export(file, f, x))
	imported, err := mlxc.Import(file)
	require.NoError(t, err)
	defer imported.Close()
	out, err := imported.Call(x)
	require.NoError(t, err)
	require.Equal(t, []float32{10, 21}, mlxtest.Read[float32](t, out[0]))
}

// Many goroutines read the same arrays, on any thread.
func TestLoadedArraysOnManyGoroutines(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.safetensors")
	saved := named{}
	for i := range 8 {
		saved[fmt.Sprint(i)] = mlxc.Full(mlxc.Float32, mlxc.Scalar(float32(i)), 1000)
	}
	require.NoError(t, mlxio.SaveSafetensors(path, saved, nil))
	loaded, _, err := mlxio.LoadSafetensors(path)
	require.NoError(t, err)
	var group sync.WaitGroup
	for i := range 64 {
		group.Go(func() {
			sum, err := mlxc.Item[float32](loaded[fmt.Sprint(i%8)].Sum())
			assert.NoError(t, err)
			assert.Equal(t, float32(i%8*1000), sum)
		})
	}
	group.Wait()
}

func cmpErr(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func TestFailedSaveKeepsOldFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "x.safetensors")
	require.NoError(t, mlxio.SaveSafetensors(path, named{"a": mlxc.Scalar(float32(1))}, nil))
	bad := mlxc.Ones(mlxc.Float32, 2).Add(mlxc.Ones(mlxc.Float32, 3))
	for _, c := range []struct {
		arrays   named
		metadata map[string]string
		want     string
	}{
		{named{"a": bad}, nil, "broadcast"},
		{named{"a": nil}, nil, "nil"},
		{named{"__metadata__": mlxc.Scalar(true)}, nil, "metadata"},
		{named{"\xff": mlxc.Scalar(true)}, nil, "UTF-8"},
		{nil, map[string]string{"a": "\xff"}, "UTF-8"},
	} {
		require.ErrorContains(t, mlxio.SaveSafetensors(path, c.arrays, c.metadata), c.want)
		require.ErrorContains(t, mlxio.WriteSafetensors(io.Discard, c.arrays, c.metadata), c.want)
	}
	mlxtest.RequireFiles(t, dir, "x.safetensors")
	arrays, _, err := mlxio.LoadSafetensors(path)
	require.NoError(t, err)
	requireElements(t, []float32{1}, []int{}, arrays["a"])
	require.ErrorIs(t, mlxio.WriteSafetensors(failingWriter{}, named{"a": mlxc.Scalar(true)}, nil), fs.ErrPermission)
}

type failingWriter struct{}

func (failingWriter) Write([]byte) (int, error) { return 0, fs.ErrPermission }
