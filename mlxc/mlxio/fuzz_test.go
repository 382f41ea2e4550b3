package mlxio_test

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/mlxc"
	"github.com/mlxgrad/mlxgrad/mlxc/mlxio"
)

// The fuzz tests begin with the inputs of their f.Add calls and of testdata/fuzz. Continuous integration runs 5,000
// inputs of each. A longer run, of some 200,000 inputs:
//
//	go test ./mlxc/mlxio -run '^$' -fuzz '^FuzzSafetensors$' -fuzztime 5m

// sameFromFile loads a file of these bytes. The load must fail if reading the bytes as a stream failed.
func sameFromFile(t *testing.T, data []byte, failed bool, load func(path string) error) {
	path := filepath.Join(t.TempDir(), "x")
	require.NoError(t, os.WriteFile(path, data, 0o600))
	err := load(path)
	if failed {
		require.Error(t, err)
	}
}

func requireSame(t *testing.T, want, got named) {
	require.Len(t, got, len(want))
	for name, a := range want {
		// Compare bytes: a NaN does not equal itself.
		var x, y bytes.Buffer
		require.NoError(t, mlxio.WriteNPY(&x, a))
		require.NoError(t, mlxio.WriteNPY(&y, got[name]))
		require.Equal(t, x.Bytes(), y.Bytes(), name)
	}
}

// The fuzzer makes the header and the elements of a file. The test adds the correct length of the header: with a
// mutated length, few inputs would pass the first check.
func FuzzSafetensors(f *testing.F) {
	arrays, _ := oneOfEach()
	var b bytes.Buffer
	require.NoError(f, mlxio.WriteSafetensors(&b, arrays, map[string]string{"a": "b"}))
	n := 8 + binary.LittleEndian.Uint64(b.Bytes())
	f.Add(string(b.Bytes()[8:n]), b.Bytes()[n:])
	f.Fuzz(func(t *testing.T, header string, data []byte) {
		mlxc.WithScope(func() {
			data = append(safetensors(header, 0), data...)
			arrays, metadata, err := mlxio.ReadSafetensors(bytes.NewReader(data))
			sameFromFile(t, data, err != nil, func(path string) error {
				lazy, _, fileErr := mlxio.LoadSafetensors(path)
				if err == nil && fileErr == nil { // surplus bytes are an error for a file, not for a stream
					requireSame(t, arrays, lazy)
				}
				return fileErr
			})
			if err != nil {
				return
			}
			var b bytes.Buffer
			require.NoError(t, mlxio.WriteSafetensors(&b, arrays, metadata))
			again, metadata2, err := mlxio.ReadSafetensors(&b)
			require.NoError(t, err)
			require.Equal(t, metadata, metadata2)
			requireSame(t, arrays, again)
		})
	})
}

func FuzzNPY(f *testing.F) {
	arrays, _ := oneOfEach()
	for _, name := range []string{"bool", "float16", "complex"} {
		var b bytes.Buffer
		require.NoError(f, mlxio.WriteNPY(&b, arrays[name]))
		n := b.Len() - arrays[name].NBytes()
		f.Add(string(b.Bytes()[10:n]), b.Bytes()[n:])
	}
	f.Fuzz(func(t *testing.T, header string, data []byte) {
		mlxc.WithScope(func() {
			data = npy(header, data...)
			a, err := mlxio.ReadNPY(bytes.NewReader(data))
			sameFromFile(t, data, err != nil, func(path string) error {
				lazy, fileErr := mlxio.LoadNPY(path)
				if err == nil && fileErr == nil {
					requireSame(t, named{"a": a}, named{"a": lazy})
				}
				return fileErr
			})
			if err != nil {
				return
			}
			var b bytes.Buffer
			require.NoError(t, mlxio.WriteNPY(&b, a))
			again, err := mlxio.ReadNPY(&b)
			require.NoError(t, err)
			requireSame(t, named{"a": a}, named{"a": again})
		})
	})
}

func FuzzGGUF(f *testing.F) {
	all, _ := oneOfEach()
	var b bytes.Buffer
	require.NoError(f, mlxio.WriteGGUF(&b, named{"a": all["float32"], "b": all["bfloat16"]}, ggufMetadata))
	f.Add(b.Bytes())
	for kind, block := range map[uint32][2]int{
		2: {32, 18}, 3: {32, 20}, 8: {32, 34}, 10: {256, 84}, 12: {256, 144},
		14: {256, 210},
	} {
		data := gguf(1, 0).tensor("a.weight", kind, 0, uint64(block[0])).pad()
		for i := range block[1] {
			data.data(byte(i * 37))
		}
		f.Add(data.b)
	}
	f.Add(gguf(0, 1).text("k").u32(9).u32(8).u64(2).text("a").text("").b)
	f.Fuzz(func(t *testing.T, data []byte) {
		mlxc.WithScope(func() {
			arrays, metadata, err := mlxio.ReadGGUF(bytes.NewReader(data))
			sameFromFile(t, data, err != nil, func(path string) error {
				lazy, _, fileErr := mlxio.LoadGGUF(path)
				if err == nil {
					require.NoError(t, fileErr)
					requireSame(t, arrays, lazy)
				}
				return fileErr
			})
			if err != nil {
				return
			}
			for name, a := range arrays {
				require.NoError(t, mlxc.Eval(a))
				if a.DType() == mlxc.Uint32 { // GGUF has no uint32
					delete(arrays, name)
				}
			}
			var b, c bytes.Buffer
			require.NoError(t, mlxio.WriteGGUF(&b, arrays, metadata))
			again, metadata2, err := mlxio.ReadGGUF(bytes.NewReader(b.Bytes()))
			require.NoError(t, err)
			requireSame(t, arrays, again)
			require.NoError(t, mlxio.WriteGGUF(&c, again, metadata2))
			require.Equal(t, b.Bytes(), c.Bytes()) // metadata may have NaN
		})
	})
}
