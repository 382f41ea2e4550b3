package mlxio_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"testing/iotest"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/internal/mlxtest"
	"github.com/mlxgrad/mlxgrad/internal/testdevice"
	"github.com/mlxgrad/mlxgrad/mlxc"
	"github.com/mlxgrad/mlxgrad/mlxc/mlxio"
)

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
		requireElements(t, []float32{0, math.MaxFloat32, 1, math.SmallestNonzeroFloat32, -2, 0.1}, []int{3, 2},
			got["strided"])
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "x.safetensors")
	require.NoError(t, mlxio.SaveSafetensors(path, arrays, metadata))
	mlxtest.RequireFiles(t, dir, "x.safetensors")
	var b bytes.Buffer
	require.NoError(t, mlxio.WriteSafetensors(&b, arrays, metadata))
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, data, b.Bytes(), "equal arrays give equal bytes")

	t.Run("path", func(t *testing.T) {
		got, m, err := mlxio.LoadSafetensors(path)
		require.False(t, got["float32"].IsReady(), "it is lazy")
		check(t, got, m, err)
	})
	t.Run("reader", func(t *testing.T) {
		tail := strings.NewReader("more")
		got, m, err := mlxio.ReadSafetensors(iotest.OneByteReader(io.MultiReader(&b, tail)))
		check(t, got, m, err)
		require.Equal(t, 4, tail.Len(), "no byte after the last element is read")
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

func TestMalformedSafetensors(t *testing.T) {
	one := func(dtype, shape, offsets string) string {
		return fmt.Sprintf(`{"a":{"dtype":%s,"shape":%s,"data_offsets":%s}}`, dtype, shape, offsets)
	}
	for name, c := range map[string]struct {
		file []byte
		want string
	}{
		"empty file":    {nil, "truncated"},
		"half a length": {[]byte{1, 2, 3}, "truncated"},
		"huge header": {
			[]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, '{'},
			"not a safetensors file",
		},
		"large header":           {[]byte{0, 0xe0, 0xf5, 5, 0, 0, 0, 0, '{'}, "truncated"},
		"no header":              {safetensors("", 0), "begin with {"},
		"no object":              {safetensors("[]", 0), "begin with {"},
		"deep":                   {safetensors(`{"a":{"x":`+strings.Repeat("[", 1_000_000), 0), "depth"},
		"half an object":         {safetensors(`{"a":`, 0), "header"},
		"two objects":            {safetensors(`{}{}`, 0), "follows"},
		"not UTF-8":              {safetensors("{\"\xff\":1}", 0), "UTF-8"},
		"name is not unique":     {safetensors(`{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}}`, 2), "is not unique"},
		"field is not unique":    {safetensors(`{"a":{"dtype":"U8","dtype":"U8","shape":[1],"data_offsets":[0,1]}}`, 1), "is not unique"},
		"metadata is not unique": {safetensors(`{"__metadata__":{"a":"b","a":"c"}}`, 0), "is not unique"},
		"metadata list":          {safetensors(`{"__metadata__":[]}`, 0), "instead of"},
		"metadata number":        {safetensors(`{"__metadata__":{"a":1}}`, 0), "instead of a string"},
		"no dtype":               {safetensors(`{"a":{"shape":[1],"data_offsets":[0,1]}}`, 1), "no dtype"},
		"unknown dtype":          {safetensors(one(`"F8_E4M3"`, "[1]", "[0,1]"), 1), "F8_E4M3"},
		"number for dtype":       {safetensors(one(`7`, "[1]", "[0,1]"), 1), "dtype"},
		"negative axis":          {safetensors(one(`"U8"`, "[-1]", "[0,1]"), 1), "non-negative integer"},
		"fractional axis":        {safetensors(one(`"U8"`, "[1.0]", "[0,1]"), 1), "non-negative integer"},
		"long axis":              {safetensors(one(`"U8"`, "[2147483648]", "[0,1]"), 1), "2³¹−1"},
		"overflow":               {safetensors(one(`"U8"`, "[2147483647,2147483647,4]", "[0,4]"), 4), "address space"},
		"many axes":              {safetensors(one(`"U8"`, "["+strings.Repeat("1,", 100_000)+"1]", "[0,1]"), 1), "64"},
		"wrong size":             {safetensors(one(`"F32"`, "[2]", "[0,7]"), 7), "takes 8 bytes"},
		"backwards":              {safetensors(one(`"U8"`, "[1]", "[1,0]"), 1), "data_offsets"},
		"one offset":             {safetensors(one(`"U8"`, "[1]", "[0]"), 1), "data_offsets"},
		"far offset":             {safetensors(one(`"U8"`, "[1]", "[18446744073709551614,18446744073709551615]"), 1), "data_offsets"},
		"hole":                   {safetensors(one(`"U8"`, "[1]", "[1,2]"), 2), "begin at byte 1"},
		"overlap":                {safetensors(`{"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"b":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}}`, 3), "begin at byte 1"},
		"truncated":              {safetensors(one(`"F32"`, "[1000000000]", "[0,4000000000]"), 7), "unexpected EOF|header describes"},
		"tensor is a list":       {safetensors(`{"a":[]}`, 0), "instead of"},
		"shape of shapes":        {safetensors(one(`"U8"`, "[[1]]", "[0,1]"), 1), "number"},
		"name is an object":      {safetensors(`{{}:1}`, 0), "header"},
	} {
		t.Run(name, func(t *testing.T) {
			requireSmallAllocations(t)
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
	require.ErrorContains(t, err, "header describes 10", "surplus bytes are an error")
}
