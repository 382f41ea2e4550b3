package mlxc_test

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/internal/mlxtest"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

func imported(t testing.TB, export func(file string) error) *mlxc.Imported {
	t.Helper()
	file := filepath.Join(t.TempDir(), "f.mlxfn")
	require.NoError(t, export(file))
	f, err := mlxc.Import(file)
	require.NoError(t, err)
	t.Cleanup(f.Close)
	return f
}

func call(t testing.TB, f *mlxc.Imported, args ...*mlxc.Array) *mlxc.Array {
	t.Helper()
	out, err := f.Call(args...)
	require.NoError(t, err)
	require.Len(t, out, 1)
	return out[0]
}

func TestImport(t *testing.T) {
	w := mlxc.FromSlice([]float32{2, 3})
	f := imported(t, func(file string) error {
		return mlxc.Export(file, func(a arrays) arrays { return arrays{a[0].Mul(w).Add(a[1]).Square()} },
			mlxc.Zeros(mlxc.Float32, 2), mlxc.Zeros(mlxc.Float32, 2))
	})
	x, y := mlxc.FromSlice([]float32{1, 10}), mlxc.FromSlice([]float32{5, 7})
	require.Equal(t, []float32{49, 37 * 37}, floats(t, call(t, f, x, y)))

	_, grads, err := mlxc.VJP(func(a arrays) arrays { return arrays{call(t, f, a[0], y)} }, arrays{x},
		arrays{mlxc.Ones(mlxc.Float32, 2)})
	require.NoError(t, err)
	require.Equal(t, []float32{2 * 7 * 2, 2 * 37 * 3}, floats(t, grads[0]))

	compiled, err := mlxc.Compile(func(a arrays) arrays { return arrays{call(t, f, a[0], y).AddScalar(1)} }).Call(x)
	require.NoError(t, err)
	require.Equal(t, []float32{50, 37*37 + 1}, floats(t, compiled[0]))

	_, err = f.Call(x)
	require.ErrorContains(t, err, "No imported function found")
	_, err = f.Call(x, mlxc.Zeros(mlxc.Float32, 3))
	require.ErrorContains(t, err, "No imported function found")
	_, err = f.Call(x, x.Add(mlxc.Zeros(mlxc.Float32, 3)))
	require.ErrorContains(t, err, "broadcast")
	f.Close()
	f.Close()
	_, err = f.Call(x, y)
	require.ErrorContains(t, err, "closed")
}

// A function imported on one goroutine is called and evaluated on other threads.
func TestImportedOnManyThreads(t *testing.T) {
	other, err := mlxc.NewStream(mlxc.CPU)
	require.NoError(t, err)
	f := imported(t, func(file string) error {
		return mlxc.Export(file, func(a arrays) arrays {
			y := a[0].Exp()
			mlxc.WithStream(other, func() { y = y.Log() })
			return arrays{y.Mul(a[0])}
		}, mlxc.Zeros(mlxc.Float32, 2))
	})
	var group sync.WaitGroup
	errs := make(chan error, 64)
	for i := range 64 {
		group.Go(func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			out, err := f.Call(mlxc.FromSlice([]float32{float32(i % 8), 2}))
			if err == nil {
				var v []float32
				v, err = mlxc.ToSlice[float32](out[0])
				if err == nil && (v[1] < 3.99 || v[1] > 4.01) {
					err = fmt.Errorf("2² is %v", v[1])
				}
			}
			errs <- err
		})
	}
	group.Wait()
	close(errs)
	for err := range errs {
		require.NoError(t, err)
	}
}

func TestExportTraces(t *testing.T) {
	runs := 0
	f := imported(t, func(file string) error {
		return mlxc.ExportTraces(file, func(a arrays) arrays {
			runs++
			sum := a[0].Sum()
			for _, b := range a[1:] {
				sum = sum.Add(b.Sum())
			}
			return arrays{sum}
		}, arrays{mlxc.Zeros(mlxc.Float32, 2)}, arrays{mlxc.Zeros(mlxc.Float32, 3)},
			arrays{mlxc.Zeros(mlxc.Float32, 3), mlxc.Zeros(mlxc.Float32, 1)})
	})
	require.Equal(t, 3, runs)
	require.Equal(t, []float32{2}, floats(t, call(t, f, mlxc.Ones(mlxc.Float32, 2))))
	require.Equal(t, []float32{3}, floats(t, call(t, f, mlxc.Ones(mlxc.Float32, 3))))
	require.Equal(t, []float32{4}, floats(t, call(t, f, mlxc.Ones(mlxc.Float32, 3), mlxc.Ones(mlxc.Float32, 1))))
	_, err := f.Call(mlxc.Ones(mlxc.Float32, 4))
	require.Error(t, err)

	dir := t.TempDir()
	file := filepath.Join(dir, "f.mlxfn")
	require.ErrorContains(t, mlxc.ExportTraces(file, func(a arrays) arrays {
		if a[0].Dim(0) == 3 {
			panic("boom")
		}
		return a
	}, arrays{mlxc.Zeros(mlxc.Float32, 2)}, arrays{mlxc.Zeros(mlxc.Float32, 3)}), "boom")
	mlxtest.RequireFiles(t, dir)
}

func TestExportShapeless(t *testing.T) {
	f := imported(t, func(file string) error {
		return mlxc.ExportShapeless(file, func(a arrays) arrays { return arrays{a[0].Exp().Add(a[0]).Sum()} },
			mlxc.Zeros(mlxc.Float32, 2))
	})
	require.Equal(t, []float32{7}, floats(t, call(t, f, mlxc.Zeros(mlxc.Float32, 7))))
}

type named = map[string]*mlxc.Array

func TestExportNamed(t *testing.T) {
	zero := func() *mlxc.Array { return mlxc.Zeros(mlxc.Float32, 2) }
	f := imported(t, func(file string) error {
		return mlxc.ExportNamed(file, func(a arrays, named map[string]*mlxc.Array) arrays {
			return arrays{a[0].Sub(named["b"]).Mul(named["a"]).Add(named["c"])}
		}, named{"c": zero(), "b": zero(), "a": zero()}, zero())
	})
	v := func(x float32) *mlxc.Array { return mlxc.FromSlice([]float32{x, -x}) }
	out, err := f.CallNamed(named{"a": v(3), "b": v(5), "c": v(7)}, v(11))
	require.NoError(t, err)
	require.Equal(t, []float32{(11-5)*3 + 7, (-11+5)*-3 - 7}, floats(t, out[0]))
	_, err = f.CallNamed(named{"a": v(3), "b": v(5), "d": v(7)}, v(11))
	require.Error(t, err)
	_, err = f.CallNamed(named{"a\x00": v(3)}, v(11))
	require.ErrorContains(t, err, "zero byte")
	_, err = f.Call(v(1))
	require.Error(t, err)
}

func TestImportThatFails(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "f.mlxfn")
	_, err := mlxc.Import(file)
	require.ErrorIs(t, err, os.ErrNotExist)
	_, err = mlxc.Import(dir)
	require.ErrorContains(t, err, "regular")
	w := mlxc.Ones(mlxc.Float32, 4)
	require.NoError(t, mlxc.Export(file, func(a arrays) arrays { return arrays{a[0].Mul(w).Sum()} },
		mlxc.Zeros(mlxc.Float32, 4)))
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	for n := 0; n < len(data); n += 11 {
		require.NoError(t, os.WriteFile(file, data[:n], 0o600))
		_, err := mlxc.Import(file)
		require.Error(t, err, "the first %d of %d bytes", n, len(data))
	}
}

func TestGraphs(t *testing.T) {
	x, y := mlxc.Ones(mlxc.Float32, 2), mlxc.Ones(mlxc.Float32, 2)
	require.NoError(t, mlxc.Eval(x, y))
	z := x.Mul(y).Exp()
	var b strings.Builder
	require.NoError(t, mlxc.PrintGraph(&b, map[*mlxc.Array]string{x: "x", z: "z"}, z))
	require.Regexp(t, `(?s)Multiply.*x.*Exp.*z`, b.String())
	b.Reset()
	require.NoError(t, mlxc.WriteDOT(&b, map[*mlxc.Array]string{x: `a "b"`}, z))
	require.Regexp(t, `(?s)^digraph \{.*Multiply.*Exp.*\}\s*$`, b.String())
	require.Contains(t, b.String(), `"a \"b\""`)

	require.ErrorIs(t, mlxc.PrintGraph(io.Discard, nil, nil), mlxc.ErrNil)
	require.ErrorIs(t, mlxc.PrintGraph(failingWriter{}, nil, z), os.ErrPermission)
	require.ErrorContains(t, mlxc.PrintGraph(io.Discard, map[*mlxc.Array]string{x: "\x00"}, z), "zero byte")
	require.NoError(t, mlxc.PrintGraph(&bytes.Buffer{}, nil))
}

type failingWriter struct{}

func (failingWriter) Write([]byte) (int, error) { return 0, fs.ErrPermission }
