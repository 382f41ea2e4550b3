package mlxio_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"testing/iotest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/x448/float16"

	"github.com/mlxgrad/mlxgrad/internal/mlxtest"
	"github.com/mlxgrad/mlxgrad/internal/testdevice"
	"github.com/mlxgrad/mlxgrad/mlxc"
	"github.com/mlxgrad/mlxgrad/mlxc/bfloat16"
	"github.com/mlxgrad/mlxgrad/mlxc/mlxio"
)

type (
	named  = map[string]*mlxc.Array
	arrays = []*mlxc.Array
)

// oneOfEach gives an array of every dtype, and what its elements are.
func oneOfEach() (named, map[string]any) {
	values := map[string]any{
		"bool":  []bool{true, false, true, true, false, false},
		"uint8": []uint8{0, 1, 2, 253, 254, 255}, "uint16": []uint16{0, 1, 2, 3, 4, math.MaxUint16},
		"uint32": []uint32{0, 1, 2, 3, 4, math.MaxUint32}, "uint64": []uint64{0, 1, 2, 3, 4, math.MaxUint64},
		"int8": []int8{0, 1, 2, 3, 127, -128}, "int16": []int16{0, 1, 2, 3, math.MaxInt16, math.MinInt16},
		"int32": []int32{0, 1, 2, 3, math.MaxInt32, math.MinInt32}, "int64": []int64{0, 1, 2, 3, math.MaxInt64, math.MinInt64},
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

// takesLittle checks, at the end of a test, that it took no memory that a file of no
// memory promised.
func takesLittle(t testing.TB) {
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

func TestSafetensorsRoundTrip(t *testing.T) {
	testdevice.CPUOnly(t, "computes float64, or an operation that MLX has for CPUs only")
	arrays, values := oneOfEach()
	arrays["scalar"] = mlxc.Scalar(int32(7))
	arrays["empty"] = mlxc.Zeros(mlxc.Float32, 0, 3)
	arrays["strided"] = arrays["float32"].Transpose()
	metadata := map[string]string{"format": "go", "quote": "\"<>&\u2028é"}
	check := func(t *testing.T, got named, gotMetadata map[string]string, err error) {
		require.NoError(t, err)
		require.Equal(t, metadata, gotMetadata)
		require.Len(t, got, len(arrays))
		for name, want := range values {
			requireElements(t, want, []int{2, 3}, got[name])
		}
		requireElements(t, []int32{7}, []int{}, got["scalar"])
		requireElements(t, []float32{}, []int{0, 3}, got["empty"])
		requireElements(t, []float32{0, math.MaxFloat32, 1, math.SmallestNonzeroFloat32, -2, 0.1}, []int{3, 2}, got["strided"])
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "x.safetensors")
	require.NoError(t, mlxio.SaveSafetensors(path, arrays, metadata))
	mlxtest.RequireFiles(t, dir, "x.safetensors")
	var b bytes.Buffer
	require.NoError(t, mlxio.WriteSafetensors(&b, arrays, metadata))
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, data, b.Bytes(), "the same arrays make the same bytes")

	t.Run("path", func(t *testing.T) {
		got, m, err := mlxio.LoadSafetensors(path)
		require.False(t, got["float32"].IsReady(), "it is lazy")
		check(t, got, m, err)
	})
	t.Run("reader", func(t *testing.T) {
		tail := strings.NewReader("more")
		got, m, err := mlxio.ReadSafetensors(iotest.OneByteReader(io.MultiReader(&b, tail)))
		check(t, got, m, err)
		require.Equal(t, 4, tail.Len(), "it reads no further than the file goes")
	})
	t.Run("fs.FS", func(t *testing.T) {
		fsys := fstest.MapFS{"a/x.safetensors": {Data: data}}
		f, err := fsys.Open("a/x.safetensors")
		require.NoError(t, err)
		got, m, err := mlxio.ReadSafetensors(f)
		require.NoError(t, f.Close())
		check(t, got, m, err)
	})
}

// The format's documentation describes this file byte by byte.
func TestSafetensorsByHand(t *testing.T) {
	header := `{"b":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}, "a" : {"shape":[],"data_offsets":[0,4],"dtype":"I32","x":[{}]}}  `
	file := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	file = append(file, header...)
	file = append(file, 5, 0, 0, 0, 0, 0, 0x80, 0x3f, 0, 0, 0, 0xc0)
	got, metadata, err := mlxio.ReadSafetensors(bytes.NewReader(file))
	require.NoError(t, err)
	require.Empty(t, metadata)
	require.NotNil(t, metadata)
	requireElements(t, []int32{5}, []int{}, got["a"])
	requireElements(t, []float32{1, -2}, []int{2}, got["b"])

	var b bytes.Buffer
	require.NoError(t, mlxio.WriteSafetensors(&b, named{"b": got["b"], "a": got["a"]}, nil))
	want := `{"a":{"dtype":"I32","shape":[],"data_offsets":[0,4]},"b":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}}`
	n := binary.LittleEndian.Uint64(b.Bytes())
	require.Equal(t, want, strings.TrimRight(string(b.Bytes()[8:8+n]), " "))
	require.Zero(t, n%8)
	require.Equal(t, file[8+len(header):], b.Bytes()[8+n:])
}

func safetensors(header string, data int) []byte {
	file := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	return append(append(file, header...), make([]byte, data)...)
}

func TestSafetensorsThatLie(t *testing.T) {
	one := func(dtype, shape, offsets string) string {
		return fmt.Sprintf(`{"a":{"dtype":%s,"shape":%s,"data_offsets":%s}}`, dtype, shape, offsets)
	}
	for name, c := range map[string]struct {
		file []byte
		want string
	}{
		"nothing":           {nil, "truncated"},
		"half a length":     {[]byte{1, 2, 3}, "truncated"},
		"huge header":       {[]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, '{'}, "no safetensors file"},
		"large header":      {[]byte{0, 0xe0, 0xf5, 5, 0, 0, 0, 0, '{'}, "truncated"},
		"no header":         {safetensors("", 0), "begin with {"},
		"no object":         {safetensors("[]", 0), "begin with {"},
		"deep":              {safetensors(`{"a":{"x":`+strings.Repeat("[", 1_000_000), 0), "depth"},
		"half an object":    {safetensors(`{"a":`, 0), "header"},
		"two objects":       {safetensors(`{}{}`, 0), "behind"},
		"not UTF-8":         {safetensors("{\"\xff\":1}", 0), "UTF-8"},
		"name twice":        {safetensors(`{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}}`, 2), "twice"},
		"field twice":       {safetensors(`{"a":{"dtype":"U8","dtype":"U8","shape":[1],"data_offsets":[0,1]}}`, 1), "twice"},
		"metadata twice":    {safetensors(`{"__metadata__":{"a":"b","a":"c"}}`, 0), "twice"},
		"metadata list":     {safetensors(`{"__metadata__":[]}`, 0), "wanted"},
		"metadata number":   {safetensors(`{"__metadata__":{"a":1}}`, 0), "text"},
		"no dtype":          {safetensors(`{"a":{"shape":[1],"data_offsets":[0,1]}}`, 1), "no dtype"},
		"unknown dtype":     {safetensors(one(`"F8_E4M3"`, "[1]", "[0,1]"), 1), "F8_E4M3"},
		"number for dtype":  {safetensors(one(`7`, "[1]", "[0,1]"), 1), "dtype"},
		"negative axis":     {safetensors(one(`"U8"`, "[-1]", "[0,1]"), 1), "no size"},
		"fractional axis":   {safetensors(one(`"U8"`, "[1.0]", "[0,1]"), 1), "no size"},
		"long axis":         {safetensors(one(`"U8"`, "[2147483648]", "[0,1]"), 1), "2³¹−1"},
		"overflow":          {safetensors(one(`"U8"`, "[2147483647,2147483647,4]", "[0,4]"), 4), "memory"},
		"many axes":         {safetensors(one(`"U8"`, "["+strings.Repeat("1,", 100_000)+"1]", "[0,1]"), 1), "64"},
		"wrong size":        {safetensors(one(`"F32"`, "[2]", "[0,7]"), 7), "takes 8 bytes"},
		"backwards":         {safetensors(one(`"U8"`, "[1]", "[1,0]"), 1), "data_offsets"},
		"one offset":        {safetensors(one(`"U8"`, "[1]", "[0]"), 1), "data_offsets"},
		"far offset":        {safetensors(one(`"U8"`, "[1]", "[18446744073709551614,18446744073709551615]"), 1), "data_offsets"},
		"hole":              {safetensors(one(`"U8"`, "[1]", "[1,2]"), 2), "begin at 1"},
		"overlap":           {safetensors(`{"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"b":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}}`, 3), "begin at 1"},
		"truncated":         {safetensors(one(`"F32"`, "[1000000000]", "[0,4000000000]"), 7), "unexpected EOF|header tells"},
		"tensor is a list":  {safetensors(`{"a":[]}`, 0), "wanted"},
		"shape of shapes":   {safetensors(one(`"U8"`, "[[1]]", "[0,1]"), 1), "number"},
		"name is an object": {safetensors(`{{}:1}`, 0), "header"},
	} {
		t.Run(name, func(t *testing.T) {
			takesLittle(t)
			_, _, err := mlxio.ReadSafetensors(bytes.NewReader(c.file))
			require.Error(t, err)
			require.Regexp(t, c.want, err.Error())
			path := filepath.Join(t.TempDir(), "x")
			require.NoError(t, os.WriteFile(path, c.file, 0o600))
			_, _, err = mlxio.LoadSafetensors(path)
			require.Error(t, err)
			require.Regexp(t, c.want, err.Error())
			require.ErrorContains(t, err, path)
		})
	}
	path := filepath.Join(t.TempDir(), "x")
	require.NoError(t, os.WriteFile(path, safetensors(`{}`, 1), 0o600))
	_, _, err := mlxio.LoadSafetensors(path)
	require.ErrorContains(t, err, "header tells of 10", "a file has nothing behind its arrays")
}

func TestFilesThatAreNotThere(t *testing.T) {
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

// What happens to a file between its opening and the evaluation.
func TestFilesThatChangeBeforeTheyAreRead(t *testing.T) {
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
			for range 2 { // and for good
				_, err := mlxc.ToSlice[float32](sum)
				require.ErrorContains(t, err, "changed")
				_, err = mlxc.ToSlice[float32](a)
				require.ErrorContains(t, err, "changed")
			}
			require.Equal(t, []float32{3}, mlxtest.Read[float32](t, mlxc.Ones(mlxc.Float32, 3).Sum()), "nothing else fails")
		})
	}
}

// Arrays that were not read yet are constants to transforms.
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

func TestSavesThatFailLeaveTheOldFile(t *testing.T) {
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

func TestNPYRoundTrip(t *testing.T) {
	testdevice.CPUOnly(t, "computes float64, or an operation that MLX has for CPUs only")
	arrays, values := oneOfEach()
	path := filepath.Join(t.TempDir(), "x.npy")
	for name, a := range arrays {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, mlxio.SaveNPY(path, a))
			lazy, err := mlxio.LoadNPY(path)
			require.NoError(t, err)
			requireElements(t, values[name], []int{2, 3}, lazy)
			var b bytes.Buffer
			require.NoError(t, mlxio.WriteNPY(&b, a))
			require.Zero(t, (b.Len()-a.NBytes())%64, "the elements are aligned")
			now, err := mlxio.ReadNPY(iotest.HalfReader(&b))
			require.NoError(t, err)
			requireElements(t, values[name], []int{2, 3}, now)
		})
	}
	for _, shape := range [][]int{{}, {1}, {0}, {3, 0, 2}, {1, 2, 3, 4}} {
		a := mlxc.Zeros(mlxc.Int32, shape...)
		require.NoError(t, mlxio.SaveNPY(path, a))
		b, err := mlxio.LoadNPY(path)
		require.NoError(t, err)
		requireElements(t, mlxtest.Read[int32](t, a), shape, b)
	}
}

func npy(header string, data ...byte) []byte {
	file := append([]byte("\x93NUMPY"), 1, 0)
	file = binary.LittleEndian.AppendUint16(file, uint16(len(header)))
	return append(append(file, header...), data...)
}

// Headers as NumPy and others write them.
func TestNPYByHand(t *testing.T) {
	header := "{'descr':'|u1','fortran_order':False,'shape':(1L,)}    \n"
	v2 := binary.LittleEndian.AppendUint32([]byte("\x93NUMPY\x02\x00"), uint32(len(header)))
	v2 = append(append(v2, header...), 7)
	for name, c := range map[string]struct {
		file  []byte
		shape []int
		want  any
	}{
		"NumPy":      {npy("{'descr': '<i2', 'fortran_order': False, 'shape': (2,), }  \n", 1, 0, 2, 0), []int{2}, []int16{1, 2}},
		"MLX":        {npy("{'descr': '<i2', 'fortran_order': False, 'shape': (1, 2, )}\n", 1, 0, 2, 0), []int{1, 2}, []int16{1, 2}},
		"other way":  {npy(`{"shape": (), "fortran_order": True, "descr": "|b1"}`, 9), []int{}, []bool{true}},
		"big-endian": {npy("{'descr': '>c8', 'fortran_order': False, 'shape': (1,)}\n", 0x3f, 0x80, 0, 0, 0x40, 0, 0, 0), []int{1}, []complex64{1 + 2i}},
		"columns":    {npy("{'descr': '|i1', 'fortran_order': True, 'shape': (2, 3)}\n", 0, 1, 2, 3, 4, 5), []int{2, 3}, []int8{0, 2, 4, 1, 3, 5}},
		"version 2":  {v2, []int{1}, []uint8{7}},
	} {
		t.Run(name, func(t *testing.T) {
			a, err := mlxio.ReadNPY(bytes.NewReader(c.file))
			require.NoError(t, err)
			requireElements(t, c.want, c.shape, a)
			path := filepath.Join(t.TempDir(), "x.npy")
			require.NoError(t, os.WriteFile(path, c.file, 0o600))
			a, err = mlxio.LoadNPY(path)
			require.NoError(t, err)
			requireElements(t, c.want, c.shape, a)
		})
	}
}

func TestNPYsThatLie(t *testing.T) {
	for _, c := range []struct {
		file []byte
		want string
	}{
		{nil, "truncated"},
		{[]byte("PK\x03\x04....."), "no .npy"},
		{[]byte("\x93NUMPY\x09\x00\x00\x00"), "version 9.0"},
		{[]byte("\x93NUMPY\x02\x00\xff\xff\xff\xff{"), "a header of"},
		{[]byte("\x93NUMPY\x01\x00\xff\xff{"), "truncated"},
		{npy(""), "begin with {"},
		{npy("{"), "no text"},
		{npy("{}"), "does not have"},
		{npy("{'descr"), "without its end"},
		{npy("{'descr'}"), "no colon"},
		{npy("{'descr': '', 'fortran_order': False, 'shape': ()}"), "no dtype"},
		{npy("{'descr': '|O', 'fortran_order': False, 'shape': ()}"), "no dtype"},
		{npy("{'descr': '<<f4', 'fortran_order': False, 'shape': ()}"), "no dtype"},
		{npy("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': ()}"), "no simple type"},
		{npy("{'descr': '<f4', 'fortran_order': 1, 'shape': ()}"), "neither"},
		{npy("{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}"), "sizes"},
		{npy("{'descr': '<f4', 'fortran_order': False, 'shape': (1)}", 0, 0, 0, 0), "tuple"},
		{npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2147483648,)}"), "2³¹−1"},
		{npy("{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}"), "sizes"},
		{npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2147483647, 2147483647, 2147483647)}"), "memory"},
		{npy("{'descr': '<f4', 'fortran_order': False, 'shape': (" + strings.Repeat("1, ", 65) + ")}"), "64 axes"},
		{npy("{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': ()}"), "twice"},
		{npy("{'descr': '<f4', 'fortran_order': False, 'shape': ()}}"), "behind"},
		{npy("{'descr': '<f4', 'fortran_order': False, 'shape': (), 'x': 1}"), "not of the format"},
		{npy("{'descr': '<f4', 'fortran_order': False, 'shape': (1000000000,)}", 1, 2, 3), "truncated|header tells"},
	} {
		t.Run(c.want, func(t *testing.T) {
			takesLittle(t)
			_, err := mlxio.ReadNPY(bytes.NewReader(c.file))
			require.Error(t, err)
			require.Regexp(t, c.want, err.Error())
			path := filepath.Join(t.TempDir(), "x")
			require.NoError(t, os.WriteFile(path, c.file, 0o600))
			_, err = mlxio.LoadNPY(path)
			require.Error(t, err)
			require.Regexp(t, c.want, err.Error())
		})
	}
}
