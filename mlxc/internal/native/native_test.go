//go:build mlxheaders

package native_test

import (
	"bytes"
	"math"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/x448/float16"

	"github.com/mlxgrad/mlxgrad/mlxc"
	"github.com/mlxgrad/mlxgrad/mlxc/bfloat16"
	"github.com/mlxgrad/mlxgrad/mlxc/internal/native"
	"github.com/mlxgrad/mlxgrad/mlxc/mlxio"
)

type named = map[string]*mlxc.Array

// oneOfEach returns arrays of all dtypes except float64 by name, with extreme elements.
func oneOfEach() named {
	return named{
		"bool": mlxc.FromSlice([]bool{true, false, true, true, false, false}, 2, 3),
		"uint8": mlxc.FromSlice([]uint8{0, 1, 2, 253, 254, 255}, 2,
			3), "uint16": mlxc.FromSlice([]uint16{0, 1, 2, 3, 4, math.MaxUint16}, 2, 3),
		"uint32": mlxc.FromSlice([]uint32{0, 1, 2, 3, 4, math.MaxUint32}, 2,
			3), "uint64": mlxc.FromSlice([]uint64{0, 1, 2, 3, 4, math.MaxUint64}, 2, 3),
		"int8": mlxc.FromSlice([]int8{0, 1, 2, 3, 127, -128}, 2,
			3), "int16": mlxc.FromSlice([]int16{0, 1, 2, 3, math.MaxInt16, math.MinInt16}, 2, 3),
		"int32": mlxc.FromSlice([]int32{0, 1, 2, 3, math.MaxInt32, math.MinInt32}, 2,
			3), "int64": mlxc.FromSlice([]int64{0, 1, 2, 3, math.MaxInt64, math.MinInt64}, 2, 3),
		"float16":  mlxc.FromSlice([]float16.Float16{0, 1, 0x3c00, 0x7bff, 0x8000, 0xc000}, 2, 3),
		"float32":  mlxc.FromSlice([]float32{0, 1, -2, math.MaxFloat32, math.SmallestNonzeroFloat32, 0.1}, 2, 3),
		"bfloat16": mlxc.FromSlice([]bfloat16.BFloat16{0, 1, 0x3f80, 0x7f7f, 0x8000, 0xc000}, 2, 3),
		"complex":  mlxc.FromSlice([]complex64{0, 1, 2i, 3 + 4i, -5, -6i}, 2, 3),
	}
}

// nativeOf converts an array for MLX's writers.
func nativeOf(t testing.TB, a *mlxc.Array) native.Array {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, mlxio.WriteNPY(&b, a))
	return native.Array{DType: int(a.DType()) - 1, Shape: a.Shape(), Data: b.Bytes()[b.Len()-a.NBytes():]}
}

func requireNative(t testing.TB, want *mlxc.Array, got native.Array) {
	t.Helper()
	require.Equal(t, nativeOf(t, want), got)
}

// MLX's readers read the files of mlxio, and the reverse. MLX's files have no float64 and no empty arrays.
func TestFilesOfMLX(t *testing.T) {
	arrays := oneOfEach()
	arrays["scalar"] = mlxc.Scalar(float32(7))
	natives := map[string]native.Array{}
	for name, a := range arrays {
		natives[name] = nativeOf(t, a)
	}
	check := func(t *testing.T, got named) {
		require.Len(t, got, len(natives))
		for name := range natives {
			requireNative(t, got[name], natives[name])
		}
	}
	dir := t.TempDir()
	for _, through := range []bool{false, true} {
		path := filepath.Join(dir, "x.safetensors")
		metadata := map[string]string{"a": "b", "é": "\"\n"}
		if through {
			metadata = map[string]string{}
		}
		require.NoError(t, mlxio.SaveSafetensors(path, arrays, metadata))
		read, readMetadata, err := native.LoadSafetensors(path, through)
		require.NoError(t, err)
		require.Equal(t, natives, read)
		require.Equal(t, metadata, readMetadata)
		require.NoError(t, native.SaveSafetensors(path, through, natives, metadata))
		got, gotMetadata, err := mlxio.LoadSafetensors(path)
		require.NoError(t, err)
		require.Equal(t, metadata, gotMetadata)
		check(t, got)

		for name, a := range arrays {
			path := filepath.Join(dir, "x.npy")
			require.NoError(t, mlxio.SaveNPY(path, a))
			read, err := native.LoadNPY(path, through)
			require.NoError(t, err)
			require.Equal(t, natives[name], read, name)
			require.NoError(t, native.SaveNPY(path, through, natives[name]))
			got, err := mlxio.LoadNPY(path)
			require.NoError(t, err)
			requireNative(t, got, natives[name])
		}
	}
	reader, writer := native.Describe(filepath.Join(dir, "x"))
	require.Equal(t, "a file of C", reader)
	require.Equal(t, "a file of C", writer)
	_, err := native.LoadNPY(filepath.Join(dir, "absent"), false)
	require.Error(t, err)
}

func TestGGUFOfMLX(t *testing.T) {
	all := oneOfEach()
	arrays, natives := named{}, map[string]native.Array{}
	for _, name := range []string{"int8", "int16", "int32", "float16", "float32"} {
		arrays[name], natives[name] = all[name], nativeOf(t, all[name])
	}
	metadata := map[string]any{
		"t": "é", "ts": []string{"a", ""}, "u8": uint8(1), "i64": int64(-5), "f32s": []float32{1, 2}, "b": true,
	}
	path := filepath.Join(t.TempDir(), "x.gguf")
	require.NoError(t, mlxio.SaveGGUF(path, arrays, metadata))
	read, readMetadata, err := native.LoadGGUF(path, "t", "ts", "u8", "i64", "f32s", "b")
	require.NoError(t, err)
	require.Equal(t, natives, read)
	require.Equal(t, metadata["t"], readMetadata["t"])
	require.Equal(t, metadata["ts"], readMetadata["ts"])
	for key, a := range (named{
		"u8": mlxc.Scalar(uint8(1)), "i64": mlxc.Scalar(int64(-5)), "b": mlxc.Scalar(true),
		"f32s": mlxc.FromSlice([]float32{1, 2}),
	}) {
		requireNative(t, a, readMetadata[key].(native.Array))
	}
	_, _, err = native.LoadGGUF(path, "absent")
	require.Error(t, err)

	require.NoError(t, native.SaveGGUF(path, natives, readMetadata))
	got, gotMetadata, err := mlxio.LoadGGUF(path)
	require.NoError(t, err)
	require.Equal(t, metadata, gotMetadata)
	require.Len(t, got, len(natives))
	for name := range natives {
		requireNative(t, got[name], natives[name])
	}
}
